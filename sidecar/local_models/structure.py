"""Tells whether the files of a model are what they should be, without loading them."""

import json
import zipfile
from pathlib import Path
from typing import BinaryIO, Final

from sidecar.local_models.ctranslate2_file import NotWholeError, check_model_file

SPEECH_ARCHITECTURE: Final = "WhisperSpec"
_GRAPH_FIELD: Final = 7
_PICKLE: Final = b"\x80"


def wrong_files(folder: Path, names: list[str]) -> list[str]:
    """Return those of *names* that are no whole files of their kind. Reads the disk."""
    return [name for name in names if not _is_whole(folder / name)]


def _is_whole(path: Path) -> bool:
    check = {
        "model.bin": _is_speech_model,
        ".json": _is_json,
        ".onnx": _is_onnx,
        ".npz": zipfile.is_zipfile,
        ".pt": _is_checkpoint,
    }.get(path.name if path.name == "model.bin" else path.suffix, _has_content)
    if path.name == "pytorch_model.bin":
        check = _is_checkpoint
    try:
        return check(path)
    except (OSError, ValueError, NotWholeError):
        return False


def _is_speech_model(path: Path) -> bool:
    return check_model_file(path) == SPEECH_ARCHITECTURE


def _is_json(path: Path) -> bool:
    json.loads(path.read_text(encoding="utf-8"))
    return True


def _has_content(path: Path) -> bool:
    return path.stat().st_size > 0


def _is_checkpoint(path: Path) -> bool:
    # PyTorch writes a zip; its older form is a bare pickle, whose end can't be seen from outside.
    if zipfile.is_zipfile(path):
        return True
    with path.open("rb") as file:
        start = file.read(4)
        return start[:1] == _PICKLE and start[:2] != b"PK"


def _is_onnx(path: Path) -> bool:
    """Walk the outermost fields of the message; a truncated file ends inside one."""
    size, has_graph = path.stat().st_size, False
    with path.open("rb") as file:
        while file.tell() < size:
            tag = _varint(file)
            field, kind = tag >> 3, tag & 7
            if kind == 0:
                _varint(file)
                continue
            length = {1: 8, 2: -1, 5: 4}.get(kind)
            if length is None or not field:
                return False
            end = (_varint(file) if length < 0 else length) + file.tell()
            if end > size:
                return False
            has_graph = has_graph or (field == _GRAPH_FIELD and kind == 2)
            file.seek(end)
    return has_graph


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise NotWholeError
        value |= (byte[0] & 0x7F) << shift
        if not byte[0] & 0x80:
            return value
    raise NotWholeError
