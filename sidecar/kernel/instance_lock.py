"""One sidecar for one data directory.

The lock is the operating system's, on the file ``lock``: it goes with the process that holds it,
however that ends, so a stale file never blocks a start and a reused pid never matters. The file's
content (pid and port) is for people and tools.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Windows locks a range of bytes, and others can't read it: this one lies far behind the content.
_LOCKED_BYTE: Final = 1 << 30
_ATTEMPTS: Final = 20


class DataDirectoryInUseError(Exception):
    """Another process serves the directory."""


class InstanceLock:
    """The lock of a data directory, held from :meth:`acquire` to :meth:`release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise :class:`DataDirectoryInUseError`; an OSError if it can't be made."""
        for _ in range(_ATTEMPTS):
            descriptor = _open(self._path)
            if not _try_lock(descriptor):
                os.close(descriptor)
                raise DataDirectoryInUseError
            # Its last holder may have removed the file between our opening and our locking it.
            if _is_at(descriptor, self._path):
                os.set_inheritable(descriptor, False)
                self._descriptor = descriptor
                self.write(port=None)
                return
            os.close(descriptor)
        raise DataDirectoryInUseError

    def write(self, *, port: int | None) -> None:
        """Say who holds the lock."""
        assert self._descriptor is not None
        content = json.dumps({"pid": os.getpid(), "port": port}).encode() + b"\n"
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, content)
        os.ftruncate(self._descriptor, len(content))

    def release(self) -> None:
        """Remove the file and give the lock back."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if sys.platform == "win32":
            # An open file can't be removed there.
            os.close(descriptor)
            with contextlib.suppress(OSError):
                self._path.unlink()
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        # Our own file after all, whatever a backup or a sync tool made of its permissions.
        path.chmod(0o600)
        return os.open(path, flags, 0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
