"""Writes an ONNX file: as much of the format as a convolutional network needs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 8
OPSET = 17
_FLOAT, _INT64 = 1, 7
_ATTRIBUTE_INT, _ATTRIBUTE_INTS, _ATTRIBUTE_FLOAT = 2, 7, 1

Attribute = int | float | Sequence[int]


class Graph:
    """A graph that grows node by node; names of values are given out in order."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._count = 0

    def constant(self, value: NDArray) -> str:
        """Add a constant of 32-bit floats or 64-bit integers."""
        name = self._name("c")
        kind = _INT64 if value.dtype.kind == "i" else _FLOAT
        data = value.astype("<i8" if kind == _INT64 else "<f4").tobytes()
        shape = b"".join(_number(1, size) for size in value.shape)
        self._constants.append(shape + _number(2, kind) + _text(8, name) + _bytes(9, data))
        return name

    def integers(self, *values: int) -> str:
        """Add a constant list of integers."""
        return self.constant(np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Add a node with one output and return the output's name."""
        output = self._name("v")
        node = b"".join(_text(1, name) for name in inputs) + _text(2, output)
        node += _text(3, output) + _text(4, operator)
        node += b"".join(_bytes(5, _attribute(*pair)) for pair in attributes.items())
        self._nodes.append(node)
        return output

    def save(
        self,
        path: Path,
        source: tuple[str, Sequence[int | str]],
        result: tuple[str, Sequence[int | str]],
        output: str,
    ) -> None:
        """Write the graph; *source* and *result* are names and shapes, *output* the last value."""
        self._nodes.append(_text(1, output) + _text(2, result[0]) + _text(4, "Identity"))
        graph = b"".join(_bytes(1, node) for node in self._nodes)
        graph += _text(2, "graph")
        graph += b"".join(_bytes(5, constant) for constant in self._constants)
        graph += _bytes(11, _value(*source)) + _bytes(12, _value(*result))
        model = _number(1, IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, OPSET))
        path.write_bytes(model)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        packed = bytes([2 << 3 | 5]) + np.array(value, "<f4").tobytes()
        return _text(1, name) + packed + _number(20, _ATTRIBUTE_FLOAT)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _ATTRIBUTE_INT)
    numbers = b"".join(_number(8, number) for number in value)
    return _text(1, name) + numbers + _number(20, _ATTRIBUTE_INTS)


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    sizes = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape
    )
    tensor = _number(1, _FLOAT) + _bytes(2, sizes)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
