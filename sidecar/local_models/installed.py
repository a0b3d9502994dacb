"""What an installed model's folder says of itself, and whether that is still true.

``installed.json`` is written with the weights and holds the length, the SHA-256 and the time of each
file. A file that was changed since has another time, and is read once more to see whether it is the
same still. What a disk spoils by itself has not: that is found when all is verified, and noted.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.clock import utc_now
from sidecar.kernel.logging import get_logger
from sidecar.local_models.structure import wrong_files

log = get_logger(__name__)

MANIFEST: Final = "installed.json"
_BLOCK: Final = 1 << 20
# More than this isn't read while somebody waits for a list.
QUICK_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """A file as it was when it was installed. ``wrong`` is the time of a content that was found to differ."""

    path: str
    size: int
    sha256: str
    mtime_ns: int
    wrong: int | None = None


Told = Callable[[int], None]
"""Is called with the length of each block that was read; what it raises ends the reading."""


def sha256_of(path: Path, told: Told | None = None) -> str:
    """Return the SHA-256 of a file in lower-case hex. Reads all of it."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            if told is not None:
                told(len(block))
    return digest.hexdigest()


def describe(folder: Path, model_id: str, hashes: dict[str, str]) -> None:
    """Write the manifest of a folder that somebody put there, if all of its files are there.

    Whether they are what their hashes say, only :meth:`FileChecks.verify` tells.
    """
    try:
        write_manifest(folder, model_id, "found", hashes)
    except OSError as error:
        log.warning("models.not_noted", extra={"reason": type(error).__name__})


def write_manifest(folder: Path, model_id: str, origin: str, hashes: dict[str, str]) -> None:
    """Describe the files of *folder*, whose hashes are given by their relative paths."""
    files = []
    for name, sha256 in sorted(hashes.items()):
        status = (folder / name).stat()
        files.append(InstalledFile(name, status.st_size, sha256, status.st_mtime_ns))
    document = {
        "model_id": model_id,
        "origin": origin,
        "installed_at": utc_now(),
        "files": [_stored(file) for file in files],
    }
    (folder / MANIFEST).write_text(json.dumps(document, indent=1), encoding="utf-8")


def _stored(file: InstalledFile) -> dict[str, Any]:
    return {name: value for name, value in asdict(file).items() if value is not None}


def _note_wrong(folder: Path, before: list[InstalledFile], after: list[InstalledFile]) -> None:
    """Write *after* in the place of *before*, unless another model took the folder's place meanwhile."""
    path = folder / MANIFEST
    document: Any = json.loads(path.read_text(encoding="utf-8"))
    if document["files"] != [_stored(file) for file in before]:
        return
    document["files"] = [_stored(file) for file in after]
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(document, indent=1), encoding="utf-8")
    draft.replace(path)


def read_manifest(folder: Path) -> list[InstalledFile] | None:
    """Return the files that were installed, None if nobody wrote them down."""
    try:
        document: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return [InstalledFile(**file) for file in document["files"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        # The manifest can be lost without the model being so; the structure of the files remains.
        log.warning("models.manifest_unreadable", extra={"reason": type(error).__name__})
        return None


class FileChecks:
    """Compares folders with what was installed, and remembers what it read. Safe in any thread."""

    def __init__(self) -> None:
        self._hashes: dict[Path, tuple[tuple[int, int], str]] = {}
        self._structures: dict[Path, tuple[tuple[int, int], bool]] = {}
        self._gate = threading.Lock()

    def is_unchanged(self, folder: Path, *, quick: bool = False) -> bool:
        """Whether every installed file is there as it was; True where no manifest says otherwise.

        With *quick* large files whose time alone has changed are taken for unchanged, unless they
        were read before. Reads the disk.
        """
        return all(self._is_same(folder, file, quick=quick) for file in read_manifest(folder) or ())

    def are_whole(self, folder: Path, names: Sequence[str]) -> bool:
        """Whether the named files are there and whole by their structure; reads those that changed."""
        return all(self._is_whole(folder, name) for name in names)

    def _is_whole(self, folder: Path, name: str) -> bool:
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            return False
        stamp = (status.st_size, status.st_mtime_ns)
        with self._gate:
            known = self._structures.get(path)
        if known is None or known[0] != stamp:
            # A large vocabulary takes more than a second to parse.
            known = (stamp, not wrong_files(folder, [name]))
            with self._gate:
                self._structures[path] = known
        return known[1]

    def verify(self, folder: Path, told: Told, *, note: bool) -> None:
        """Read every installed file whole, whatever its time, for those that differ.

        The others of this class know of it from then on, and with *note* later processes too.
        """
        before = read_manifest(folder) or []
        after = [self._read(folder, file, told) for file in before]
        if note and after != before:
            try:
                _note_wrong(folder, before, after)
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.warning("models.not_noted", extra={"reason": type(error).__name__})

    def _read(self, folder: Path, file: InstalledFile, told: Told) -> InstalledFile:
        path = folder / file.path
        try:
            status = path.stat()
            stamp = (status.st_size, status.st_mtime_ns)
            sha256 = sha256_of(path, told)
        except OSError:
            return replace(file, wrong=0)
        with self._gate:
            self._hashes[path] = (stamp, sha256)
        return replace(file, wrong=None if sha256 == file.sha256 else stamp[1])

    def _is_same(self, folder: Path, file: InstalledFile, *, quick: bool) -> bool:
        path = folder / file.path
        try:
            status = path.stat()
            if status.st_size != file.size:
                return False
            stamp = (status.st_size, status.st_mtime_ns)
            with self._gate:
                known = self._hashes.get(path)
            if known is None or known[0] != stamp:
                if stamp[1] in (file.mtime_ns, file.wrong):
                    return stamp[1] != file.wrong
                if quick and file.size > QUICK_BYTES:
                    return True
                known = (stamp, sha256_of(path))
                with self._gate:
                    self._hashes[path] = known
        except OSError:
            return False
        return known[1] == file.sha256


def disk_bytes(folder: Path) -> int | None:
    """Return how many bytes the files of *folder* have, None if it can't be read."""
    total = 0
    try:
        for child in folder.iterdir():
            if child.is_dir() and not child.is_symlink():
                below = disk_bytes(child)
                if below is None:
                    return None
                total += below
            else:
                total += child.stat().st_size
    except OSError:
        return None
    return total
