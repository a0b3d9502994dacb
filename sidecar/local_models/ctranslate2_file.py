"""Tells whether a CTranslate2 ``model.bin`` is whole, without loading it."""

import struct
from pathlib import Path
from typing import BinaryIO, Final

_VERSIONS: Final = range(2, 32)
# No model that this product runs comes near these; a larger count means that the file is no model.
_MOST_VARIABLES: Final = 100_000
_MOST_DIMENSIONS: Final = 16


class NotWholeError(Exception):
    """The file ends early, or isn't a model."""


def check_model_file(path: Path) -> str:
    """Return the name of the architecture, for example ``WhisperSpec``.

    Walks the headers of the variables and skips their data, so it is fast for a large file. Raises
    :class:`NotWholeError`, or OSError if the file can't be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        if _number(file, "<I") not in _VERSIONS:
            raise NotWholeError
        architecture = _string(file)
        _number(file, "<I")  # the revision of the architecture
        variables = _number(file, "<I")
        if not 0 < variables <= _MOST_VARIABLES:
            raise NotWholeError
        for _ in range(variables):
            _skip_variable(file, size)
    return architecture


def _skip_variable(file: BinaryIO, size: int) -> None:
    _string(file)
    dimensions = _number(file, "<B")
    if dimensions > _MOST_DIMENSIONS:
        raise NotWholeError
    _exactly(file, 4 * dimensions + 1)  # the dimensions and the type of the numbers
    end = file.tell() + 4 + _number(file, "<I")
    if end > size:
        raise NotWholeError
    file.seek(end)


def _number(file: BinaryIO, form: str) -> int:
    value: int = struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    return value


def _string(file: BinaryIO) -> str:
    return _exactly(file, _number(file, "<H")).rstrip(b"\0").decode("utf-8", "replace")


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise NotWholeError
    return data
