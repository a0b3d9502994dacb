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
    """Look at every file of the vault; hidden files and folders are left out."""
    walked = Walked({}, {})
    for path, entry in _entries(root):
        if is_link(entry.stat(follow_symlinks=False)):
            walked.skipped[path] = ("symlink", 0)
        elif is_note_name(entry.name):
            _look_at(path, entry, walked)
    return walked


def _look_at(path: str, entry: "os.DirEntry[str]", walked: Walked) -> None:
    # Windows fills a DirEntry from the folder, where sizes and times may be stale.
    info = os.lstat(entry.path) if os.name == "nt" else entry.stat(follow_symlinks=False)
    if not stat_module.S_ISREG(info.st_mode):
        walked.skipped[path] = ("not_a_file", 0)
    elif info.st_size > MAX_NOTE_BYTES:
        walked.skipped[path] = ("too_large", info.st_size)
    else:
        walked.notes[path] = stamp_of(info)


def _entries(root: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield all but plain folders, of links to folders only the link itself."""
    pending = [""]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(root / current) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not _is_storable(entry.name):
                        continue
                    path = join_path(current, entry.name)
                    try:
                        if entry.is_dir(follow_symlinks=False) and not is_link(
                            entry.stat(follow_symlinks=False)
                        ):
                            pending.append(path)
                        elif is_note_name(entry.name) or entry.is_symlink():
                            yield path, entry
                    except FileNotFoundError:
                        continue
        except OSError as error:
            if current == "":
                raise ProjectError("VAULT_UNAVAILABLE") from error
            log.warning("vault.folder_unreadable", extra={"error": type(error).__name__})


def folders(root: Path) -> list[str]:
    """Return every folder of the vault but hidden ones, empty ones included, in order."""
    found: list[str] = []
    pending = [""]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(root / current) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not _is_storable(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False) and not is_link(
                        entry.stat(follow_symlinks=False)
                    ):
                        found.append(join_path(current, entry.name))
                        pending.append(found[-1])
        except OSError as error:
            if current == "":
                raise ProjectError("VAULT_UNAVAILABLE") from error
    return sorted(found)


def _is_storable(name: str) -> bool:
    """Whether a name is text; others can't be told to a client, nor named by one."""
    return not any(unicodedata.category(character) == "Cs" for character in name)
