"""Reads the weights of a PyTorch file without PyTorch, and runs nothing that the file names."""

import io
import pickle
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]

_TYPES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "LongStorage": np.dtype("<i8"),
}


@dataclass(frozen=True, slots=True)
class _StorageType:
    name: str


def read_checkpoint(path: Path) -> Weights:
    """Return the tensors of a state dictionary by their names, counters left out."""
    with zipfile.ZipFile(path) as archive:
        description = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        root = str(PurePosixPath(description).parent)

        class Reader(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                known = {
                    ("collections", "OrderedDict"): OrderedDict,
                    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
                    ("torch", "FloatStorage"): _StorageType("FloatStorage"),
                    ("torch", "LongStorage"): _StorageType("LongStorage"),
                }
                return known[module, name]

            def persistent_load(self, pid: Any) -> NDArray[Any]:
                _, kind, key, *_ = pid
                return np.frombuffer(archive.read(f"{root}/data/{key}"), _TYPES[kind.name])

        tensors = Reader(io.BytesIO(archive.read(description))).load()
    return {name: value for name, value in tensors.items() if value.dtype == np.float32}


def _tensor(
    storage: NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> NDArray[Any]:
    view = np.lib.stride_tricks.as_strided(
        storage[offset:], size, [step * storage.itemsize for step in stride]
    )
    return np.ascontiguousarray(view)
