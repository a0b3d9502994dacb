"""The file that an exporter writes: counted, hashed, and in place only when it is whole."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sidecar.kernel.errors import ProjectError


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that is complete: *size* in bytes, *sha256* in lower-case hex."""

    path: Path
    size: int
    sha256: str


class OutputFile:
    """Takes the bytes of an artefact; a context manager that leaves no file behind on an error."""

    def __init__(self, path: Path, limit: int | None) -> None:
        """Write to *path*, at most *limit* bytes."""
        self._path = path
        self._limit = limit
        self._hash = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def write(self, data: bytes) -> None:
        """Append *data*; raises ``EXPORT_OUTPUT_TOO_LARGE`` before the file is larger than allowed."""
        self._size += len(data)
        if self._limit is not None and self._size > self._limit:
            raise ProjectError("EXPORT_OUTPUT_TOO_LARGE", details={"limit_bytes": self._limit})
        self._hash.update(data)
        self._file.write(data)

    def finish(self) -> WrittenFile:
        """Make what was written durable."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return WrittenFile(self._path, self._size, self._hash.hexdigest())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        if kind is not None:
            self._path.unlink(missing_ok=True)


def put_in_place(written: WrittenFile, target: Path) -> None:
    """Move a complete file to *target* in one step, durably."""
    written.path.replace(target)
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
