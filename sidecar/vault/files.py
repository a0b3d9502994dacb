"""The vault's folder: reading, atomic and durable writing, trash, and walking.

Everything here blocks and is called on a worker thread. Paths are relative to the vault, with ``/``
as separator and spelled as they lie on disk. No symlink is ever followed below the vault's root.
"""

import contextlib
import errno
import os
import secrets
import shutil
import stat as stat_module
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.full_disk import is_full_disk
from sidecar.kernel.logging import get_logger
from sidecar.vault.names import (
    NOTE_SUFFIX,
    collision_key,
    free_name,
    join_path,
    safe_name,
    split_path,
)
from sidecar.vault.note_text import NotTextError, compare_key, decode, encode

log = get_logger(__name__)

MAX_NOTE_BYTES: Final = 8 * 1024 * 1024
TRASH: Final = ".trash"
_TEMPORARY_PREFIX: Final = ".notesagent-"
_TEMPORARY_SUFFIX: Final = ".tmp"
_LINK_UNSUPPORTED: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV)

SkipReason = Literal["symlink", "too_large", "binary", "unreadable", "not_a_file"]


class SkippedError(Exception):
    """A file that can't be a note."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason = reason


class FileChangedError(Exception):
    """Another program wrote the file since it was read."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells that a file has changed, without reading it."""

    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note's file as it was read."""

    path: str
    content: str
    bom: bool
    stamp: FileStamp
    created_ns: int


def stamp_of(info: os.stat_result) -> FileStamp:
    """Return the stamp of a stat result."""
    return FileStamp(info.st_size, info.st_mtime_ns)


def is_link(info: os.stat_result) -> bool:
    """Whether a path leads somewhere else: a symlink, or a junction of Windows."""
    if stat_module.S_ISLNK(info.st_mode):
        return True
    # 0xA0000003: IO_REPARSE_TAG_MOUNT_POINT; placeholders of sync clients have other tags.
    return getattr(info, "st_reparse_tag", 0) == 0xA0000003


class VaultFiles:
    """The files of one vault."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = str(root).rstrip(os.sep) + os.sep

    # -- reading -------------------------------------------------------------------------------

    def absolute(self, path: str) -> Path:
        """Return where *path* lies on this machine."""
        return self.root / path if path else self.root

    def _name(self, path: str) -> str:
        """Return what :meth:`absolute` does as a string: a scan asks for very many."""
        return self._prefix + path

    def stamp(self, path: str) -> FileStamp | None:
        """Return the stamp of a note's file; None if no regular file is there."""
        info = self._stat_inside(path)
        return stamp_of(info) if info and stat_module.S_ISREG(info.st_mode) else None

    def _stat_inside(self, path: str) -> os.stat_result | None:
        """Return the lstat of *path* if neither it nor a folder above it leads out of the vault."""
        end = path.find("/")
        try:
            while end >= 0:
                if is_link(os.lstat(self._name(path[:end]))):
                    return None
                end = path.find("/", end + 1)
            info = os.lstat(self._name(path))
        except (OSError, ValueError):
            return None
        return None if is_link(info) else info

    def read(self, path: str) -> NoteFile:
        """Return a note's file.

        Raises :class:`FileNotFoundError`, or :class:`SkippedError` for what can't be a note. A file
        that changes while it is read is read again.
        """
        for _ in range(3):
            info = self._stat_inside(path)
            if info is None:
                raise self._why_not(path)
            found = self._read_once(path, info)
            if found is not None:
                return found
        raise SkippedError("unreadable")

    def _why_not(self, path: str) -> Exception:
        try:
            os.lstat(self.absolute(path))
        except (OSError, ValueError):
            return FileNotFoundError(path)
        return SkippedError("symlink")

    def _read_once(self, path: str, info: os.stat_result) -> NoteFile | None:
        if stat_module.S_ISDIR(info.st_mode):
            raise FileNotFoundError(path)
        if not stat_module.S_ISREG(info.st_mode):
            raise SkippedError("not_a_file")
        if info.st_size > MAX_NOTE_BYTES:
            raise SkippedError("too_large")
        # What has become a link or a pipe since is neither followed nor waited for.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        flags |= getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(self._name(path), flags), "rb") as file:  # noqa: PTH123 - a descriptor
                before = os.fstat(file.fileno())
                # A buffer of the greatest size for every file would take as long as the reading.
                data = file.read(min(before.st_size, MAX_NOTE_BYTES) + 1)
                after = os.fstat(file.fileno())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SkippedError("unreadable") from error
        if len(data) > MAX_NOTE_BYTES:
            raise SkippedError("too_large")
        unchanged = stamp_of(before) == stamp_of(after) and len(data) == before.st_size
        if not unchanged or not stat_module.S_ISREG(before.st_mode):
            return None
        try:
            text, bom = decode(data)
        except NotTextError as error:
            raise SkippedError("binary") from error
        birth = getattr(after, "st_birthtime_ns", None) or int(
            getattr(after, "st_birthtime", 0) * 1e9
        )
        return NoteFile(path, text, bom, stamp_of(after), birth or after.st_mtime_ns)

    # -- writing -------------------------------------------------------------------------------

    def ensure_folder(self, folder: str) -> str:
        """Return the folder's path as it lies on disk; makes what is missing of it.

        An existing name is used however it is normalised; a new one is made safe.
        """
        current = ""
        for name in folder.split("/") if folder else []:
            current = join_path(current, self._existing_name(current, name) or safe_name(name))
            target = self.absolute(current)
            try:
                info = os.lstat(target)
            except FileNotFoundError:
                target.mkdir()
                _sync_folder(target.parent)
                continue
            if is_link(info) or not stat_module.S_ISDIR(info.st_mode):
                raise _folder_refused()
        return current

    def _existing_name(self, folder: str, name: str) -> str | None:
        try:
            names = os.listdir(self.absolute(folder))  # noqa: PTH208 - only names are wanted
        except OSError as error:
            raise ProjectError("VAULT_UNAVAILABLE") from error
        if name in names:
            return name
        wanted = compare_key(name)
        for other in names:
            if compare_key(other) == wanted:
                return other
        if os.path.lexists(self.absolute(join_path(folder, name))):
            # The file system doesn't discern names as we do: it knows this one by another spelling.
            wanted = collision_key(name)
            return next((other for other in names if collision_key(other) == wanted), None)
        return None

    def _taken(self, folder: str, but: str | None = None) -> set[str]:
        names = os.listdir(self.absolute(folder))  # noqa: PTH208 - only names are wanted
        return {collision_key(name) for name in names if name != but}

    def create(self, folder: str, stem: str, content: str) -> NoteFile:
        """Write a new note under a free name; nothing is ever overwritten."""
        with _storage_errors():
            folder = self.ensure_folder(folder)
            temporary = self._write_temporary(folder, encode(content, bom=False), None)
            try:
                while True:
                    path = join_path(folder, free_name(stem, NOTE_SUFFIX, self._taken(folder)))
                    try:
                        _publish_new(temporary, self.absolute(path))
                        break
                    except FileExistsError:
                        continue
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(self.absolute(folder))
        return self.read(path)

    def replace(self, path: str, content: str, *, bom: bool, expected: FileStamp) -> NoteFile:
        """Write a note's whole text in place of the old one; it keeps its mode and attributes.

        Raises :class:`FileChangedError` if the file isn't the *expected* one any more.
        """
        target = self.absolute(path)
        with _storage_errors():
            temporary = self._write_temporary(split_path(path)[0], encode(content, bom=bom), target)
            try:
                if self.stamp(path) != expected:
                    raise FileChangedError
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(target.parent)
        return self.read(path)

    def _write_temporary(self, folder: str, data: bytes, like: Path | None) -> Path:
        name = f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}{_TEMPORARY_SUFFIX}"
        temporary = self.absolute(folder) / name
        try:
            with temporary.open("xb") as file:
                file.write(data)
                if like is not None:
                    shutil.copystat(like, temporary, follow_symlinks=False)
                    os.utime(temporary)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def move(self, path: str, folder: str, stem: str) -> str:
        """Move or rename a note's file to a free name and return its new path."""
        with _storage_errors():
            folder = self.ensure_folder(folder)
            old_folder, old_name = split_path(path)
            but = old_name if folder == old_folder else None
            name = free_name(stem, NOTE_SUFFIX, self._taken(folder, but))
            new_path = join_path(folder, name)
            if new_path != path:
                self._rename(path, new_path)
        return new_path

    def trash(self, path: str) -> str:
        """Move a note's file into the trash as it is and return its path there."""
        with _storage_errors():
            folder = self.absolute(TRASH)
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                _sync_folder(self.root)
            if is_link(os.lstat(folder)):
                raise ProjectError("VAULT_UNAVAILABLE")
            name = split_path(path)[1]
            trash_path = join_path(
                TRASH,
                free_name(name[: -len(NOTE_SUFFIX)], name[-len(NOTE_SUFFIX) :], self._taken(TRASH)),
            )
            self._rename(path, trash_path)
        return trash_path

    def restore(self, trash_path: str, path: str) -> str:
        """Move a file out of the trash to *path*, or a free name beside it; returns where it lies."""
        with _storage_errors():
            folder, name = split_path(path)
            folder = self.ensure_folder(folder)
            name = free_name(
                name[: -len(NOTE_SUFFIX)], name[-len(NOTE_SUFFIX) :], self._taken(folder)
            )
            self._rename(trash_path, join_path(folder, name))
        return join_path(folder, name)

    def _rename(self, old: str, new: str) -> None:
        source, target = self.absolute(old), self.absolute(new)
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # A folder of the vault that is another file system.
            data = source.read_bytes()
            temporary = self._write_temporary(split_path(new)[0], data, source)
            temporary.replace(target)
            source.unlink()
        _sync_folder(target.parent)
        if source.parent != target.parent:
            _sync_folder(source.parent)

    def remove_leftovers(self) -> None:
        """Remove temporary files of ours that a dead process left."""
        pending = [self.root]
        while pending:
            with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                        pending.append(Path(entry.path))
                    elif entry.name.startswith(_TEMPORARY_PREFIX) and entry.name.endswith(
                        _TEMPORARY_SUFFIX
                    ):
                        Path(entry.path).unlink(missing_ok=True)


def _publish_new(temporary: Path, target: Path) -> None:
    """Give *temporary* its final name, unless something has that name already."""
    if os.name == "nt":
        temporary.rename(target)  # refuses to overwrite
        return
    try:
        os.link(temporary, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _LINK_UNSUPPORTED:
            raise
        if os.path.lexists(target):
            raise FileExistsError(str(target)) from None
        temporary.rename(target)


def _sync_folder(folder: Path) -> None:
    """Make a name in *folder* durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folder_refused() -> ProjectError:
    return ProjectError(
        "VALIDATION_ERROR",
        details={
            "errors": [
                {
                    "loc": ["body", "folder"],
                    "message": "A part of this path is no folder of the vault.",
                }
            ]
        },
    )


@contextlib.contextmanager
def _storage_errors() -> Iterator[None]:
    """Tell a client that the disk is full or the vault can't be written, without its path."""
    try:
        yield
    except FileNotFoundError as error:
        raise ProjectError("VAULT_UNAVAILABLE") from error
    except OSError as error:
        log.error("vault.write_failed", extra={"errno": error.errno})
        raise ProjectError(
            "DISK_SPACE_INSUFFICIENT" if is_full_disk(error) else "VAULT_UNAVAILABLE"
        ) from error
