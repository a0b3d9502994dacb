"""Looks through the vault's folder. Hidden files and folders are left out, links not followed."""

import os
import stat as stat_module
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.vault.files import MAX_NOTE_BYTES, FileStamp, SkipReason, is_link, stamp_of
from sidecar.vault.names import is_note_name, join_path

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk through the vault found."""

    notes: dict[str, FileStamp]
    skipped: dict[str, tuple[SkipReason, int]]


def walk(root: Path) -> Walked:
    """Look at every file of the vault that could be a note."""
    walked = Walked({}, {})
    for path, entry, is_folder in _entries(root):
        if is_folder:
            continue
        if _is_link(entry):
            walked.skipped[path] = ("symlink", 0)
        elif is_note_name(entry.name):
            _look_at(path, entry, walked)
    return walked


def folders(root: Path) -> list[str]:
    """Return every folder of the vault, empty ones included, in order."""
    return sorted(path for path, _, is_folder in _entries(root) if is_folder)


def _look_at(path: str, entry: "os.DirEntry[str]", walked: Walked) -> None:
    try:
        # Windows fills a DirEntry from the folder, where sizes and times may be stale.
        info = os.lstat(entry.path) if os.name == "nt" else entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat_module.S_ISREG(info.st_mode):
        walked.skipped[path] = ("not_a_file", 0)
    elif info.st_size > MAX_NOTE_BYTES:
        walked.skipped[path] = ("too_large", info.st_size)
    else:
        walked.notes[path] = stamp_of(info)


def _entries(root: Path) -> Iterator[tuple[str, "os.DirEntry[str]", bool]]:
    """Yield (path, entry, whether it is a folder) of all that lies in the vault.

    Raises ``VAULT_UNAVAILABLE`` if the vault itself can't be read; a folder that can't is left out.
    """
    pending = [""]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(root / current) as entries:
                found = list(entries)
        except OSError as error:
            if current == "":
                raise ProjectError("VAULT_UNAVAILABLE") from error
            log.warning("vault.folder_unreadable", extra={"error": type(error).__name__})
            continue
        for entry in found:
            if entry.name.startswith(".") or not _is_storable(entry.name):
                continue
            path = join_path(current, entry.name)
            is_folder = _is_folder(entry)
            if is_folder:
                pending.append(path)
            if is_folder is not None:
                yield path, entry, is_folder


def _is_link(entry: "os.DirEntry[str]") -> bool:
    # Only links and what looks like a folder can be links: that spares a look at every file.
    if entry.is_symlink():
        return True
    return os.name == "nt" and entry.is_dir(follow_symlinks=False)


def _is_folder(entry: "os.DirEntry[str]") -> bool | None:
    """Whether an entry is a folder that is no link; None if it is gone by now."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            return False
        return not is_link(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def _is_storable(name: str) -> bool:
    """Whether a name is text; others can't be told to a client, nor named by one."""
    return not any(unicodedata.category(character) == "Cs" for character in name)
