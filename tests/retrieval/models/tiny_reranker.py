"""A small cross-encoder as a real ONNX file, with weights that are known.

It gives every token a vector, adds up those of the query and those of the text, and multiplies the
two sums: the more words both have in common, the higher the score. No package carries a trained
reranker; this one goes the same way through tokenizers and ONNX Runtime as one does. The file is
written field by field as protocol buffers have it, https://onnx.ai/onnx/repo-docs/IR.html.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.retrieval.models.real_model import WEIGHTS

VOCABULARY, WIDTH = 30_522, 64
BIAS = -1.5
FLOAT, INT64 = 1, 7
_SPECIAL = (0, 100, 101, 102, 103)


def weights() -> NDArray[np.float32]:
    """Return the vector of every token; the marks between texts have none."""
    vectors = np.random.default_rng(11).standard_normal((VOCABULARY, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[list(_SPECIAL)] = 0.0
    return vectors


def lay_reranker(folder: Path, *, classes: int = 1) -> Path:
    """Make a model folder; with two classes the first says "no" and the second "yes"."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(_model(classes))
    shutil.copy(WEIGHTS / "tokenizer.json", folder / "tokenizer.json")
    config = {"architectures": ["BertForSequenceClassification"]}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def expected(query: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return what the model says, worked out without it."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    tokenizer.no_padding()
    vectors = weights()

    def total(text: str) -> NDArray[np.float32]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return np.asarray(vectors[ids].sum(axis=0))

    logits = np.array([total(query) @ total(text) + BIAS for text in texts])
    return np.asarray(1 / (1 + np.exp(-logits)))


# -- the file ------------------------------------------------------------------------------------


def _model(classes: int) -> bytes:
    nodes = [
        _node("Gather", ["vectors", "input_ids"], "all"),
        _node("Mul", ["attention_mask", "token_type_ids"], "of_text"),
        _node("Sub", ["attention_mask", "of_text"], "of_query"),
        *_sum_of("query"),
        *_sum_of("text"),
        _node("Mul", ["query", "text"], "product"),
        _node("ReduceSum", ["product", "last"], "dot"),
        _node("Add", ["dot", "bias"], "yes"),
    ]
    if classes == 2:
        nodes += [_node("Mul", ["yes", "nothing"], "no"), _node("Concat", ["no", "yes"], "both", 1)]
    constants = [
        _tensor("vectors", FLOAT, (VOCABULARY, WIDTH), weights().tobytes()),
        _tensor("bias", FLOAT, (1,), np.float32(BIAS).tobytes()),
        _tensor("nothing", FLOAT, (1,), np.float32(0).tobytes()),
        _tensor("last", INT64, (1,), np.int64(-1).tobytes()),
        _tensor("tokens", INT64, (1,), np.int64(1).tobytes()),
    ]
    inputs = [
        _value(name, INT64, ("batch", "length"))
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = _value("yes" if classes == 1 else "both", FLOAT, ("batch", classes))
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, b"tiny"),
            *(_field(5, constant) for constant in constants),
            *(_field(11, value) for value in inputs),
            _field(12, output),
        ]
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _number(2, 13))


def _sum_of(part: str) -> list[bytes]:
    """Return the nodes that add up the vectors of one of the two texts."""
    return [
        _node("Cast", [f"of_{part}"], f"{part}_weight", FLOAT, "to"),
        _node("Unsqueeze", [f"{part}_weight", "last"], f"{part}_column"),
        _node("Mul", ["all", f"{part}_column"], f"{part}_vectors"),
        _node("ReduceSum", [f"{part}_vectors", "tokens"], part, 0, "keepdims"),
    ]


def _node(
    kind: str, inputs: Sequence[str], output: str, value: int | None = None, name: str = "axis"
) -> bytes:
    parts = [*(_field(1, given.encode()) for given in inputs), _field(2, output.encode())]
    parts.append(_field(4, kind.encode()))
    if value is not None:
        parts.append(_field(5, _field(1, name.encode()) + _number(3, value) + _number(20, 2)))
    return b"".join(parts)


def _tensor(name: str, kind: int, shape: Sequence[int], data: bytes) -> bytes:
    sizes = b"".join(_number(1, size) for size in shape)
    return sizes + _number(2, kind) + _field(8, name.encode()) + _field(9, data)


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = b"".join(
        _field(1, _number(1, size) if isinstance(size, int) else _field(2, size.encode()))
        for size in shape
    )
    tensor = _number(1, kind) + _field(2, sizes)
    return _field(1, name.encode()) + _field(2, _field(1, tensor))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
