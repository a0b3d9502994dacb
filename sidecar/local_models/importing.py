"""Takes a model in from a folder or an archive that the user has.

The files of the model are looked for, in the program's own layout or in that of a hub; they alone are
copied or linked, under names of the catalogue, whatever an archive calls them. An archive whose names
lead anywhere else is refused as a whole.
"""

import hashlib
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol

from sidecar.kernel.catalogue import Localised
from sidecar.kernel.errors import ProjectError
from sidecar.local_models.blocking_work import BlockingWork
from sidecar.local_models.catalogue import CatalogueModel, ModelFile, is_safe_name
from sidecar.local_models.downloading import SPARE_BYTES, FreeSpace, complete_staging, free_space

MOST_FILES: Final = 10_000
MOST_BYTES: Final = 64 << 30
MOST_RATIO: Final = 200
DEEPEST: Final = 6
_BLOCK: Final = 1 << 20
# What the readers of archives raise for a cut or damaged one; for some of it OSError without a number.
_DAMAGED: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,
)

Check = Callable[[], None]
"""Raises :class:`BrokenOff` once the import is cancelled."""


class Source(Protocol):
    """Where a model may lie."""

    def path(self, name: str) -> Path | None:
        """Return the file itself, None if it lies in an archive."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return the length of each file by its relative path."""
        ...

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file."""
        ...


def invalid(reason: str, **files: list[str]) -> ProjectError:
    """Return the error for something that isn't the model; *files* are those that the reason is about."""
    named = {"files": ", ".join(name for names in files.values() for name in names)}
    explanation = Localised(f"model_import.{reason}", named if files else {})
    details = {"reason": reason, **files, "explanation": explanation.to_json()}
    return ProjectError("MODEL_INVALID", details=details)


class ModelImport(BlockingWork):
    """One import."""

    def __init__(
        self,
        model: CatalogueModel,
        source: Path,
        staging: Path,
        *,
        link: bool = False,
        managed: Path | None = None,
        free: FreeSpace = free_space,
    ) -> None:
        """With *link* the files of a folder stay where they are, and links to them are made.

        Those in the folder *managed* are copied nevertheless: they go once the import takes their place.
        """
        super().__init__()
        self._link = link
        self._managed = managed
        self._model = model
        self._source = source
        self._staging = staging
        self._free = free

    def run(self) -> None:
        """Bring the model into the staging folder.

        Raises ``MODEL_INVALID``, ``DISK_SPACE_INSUFFICIENT``, :class:`BrokenOff`, or OSError.
        """
        with open_source(self._source, self.check) as source:
            sizes = source.sizes()
            names = recognise(self._model, sizes)
            self.total = sum(sizes[name] for name in names.values())
            self._staging.mkdir(parents=True)
            needed = 0 if self._link and self._source.is_dir() else self.total
            if self._free(self._staging) < needed + SPARE_BYTES:
                raise ProjectError("DISK_SPACE_INSUFFICIENT", details={"needed_bytes": self.total})
            hashes = {
                file.path: self._copy(source, names[file.path], file) for file in self._model.files
            }
        try:
            complete_staging(self._model, self._staging, hashes, "import")
        except ProjectError as error:
            if error.code != "MODEL_HASH_MISMATCH":
                raise
            raise invalid("wrong_files", wrong=error.details["files"]) from error

    def _may_link(self, original: Path) -> bool:
        if not self._link:
            return False
        return self._managed is None or not original.resolve().is_relative_to(
            self._managed.resolve()
        )

    def _copy(self, source: Source, name: str, file: ModelFile) -> str:
        target = self._staging / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        original = source.path(name)
        linked = original is not None and self._may_link(original) and _linked(original, target)
        digest = hashlib.sha256()
        with (Path(os.devnull) if linked else target).open("wb") as output:
            for block in source.read(name):
                self.check()
                digest.update(block)
                output.write(block)
                self.bytes_done += len(block)
            output.flush()
            if not linked:
                os.fsync(output.fileno())
        sha256 = digest.hexdigest()
        if file.sha256 not in (None, sha256):
            raise invalid("wrong_files", wrong=[file.path])
        return sha256


def _linked(original: Path, link: Path) -> bool:
    """Make a link; False where the system lets nobody make one, as Windows may (not tried there)."""
    try:
        link.symlink_to(original.resolve())
    except OSError:
        return False
    return True


def recognise(model: CatalogueModel, sizes: dict[str, int]) -> dict[str, str]:
    """Return where each file of the model lies; raises ``MODEL_INVALID`` with what is missing.

    The files may lie in a folder below, and under the names that they have at their source.
    """
    best: dict[str, str] = {}
    for base in _bases(model, sizes):
        found = {
            file.path: name
            for file in model.files
            for name in (base + file.source_path, base + file.path)
            if name in sizes
        }
        if len(found) > len(best):
            best = found
    missing = [file.path for file in model.files if file.path not in best]
    if missing:
        raise invalid("missing_files", missing=missing)
    wrong = [file.path for file in model.files if file.size not in (None, sizes[best[file.path]])]
    if wrong:
        raise invalid("wrong_files", wrong=wrong)
    return best


def _bases(model: CatalogueModel, sizes: Iterable[str]) -> list[str]:
    """Return the folders, each with its slash, in which a file of the model lies."""
    wanted = {path for file in model.files for path in (file.path, file.source_path)}
    bases = {name.removesuffix(path) for name in sizes for path in wanted if name.endswith(path)}
    return sorted((base for base in bases if not base or base.endswith("/")), key=len)


@contextmanager
def open_source(path: Path, check: Check) -> Iterator[Source]:
    """Open a folder, a zip or a tar; raises ``MODEL_INVALID`` for anything else.

    *check* is called again and again while it is looked through.
    """
    if path.is_dir():
        yield _Folder(path, check)
        return
    if path.exists() and not path.is_file():
        # Reading from a pipe or a device may never end.
        raise invalid("not_a_folder_or_archive")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield _Zip(archive)
            return
        if tarfile.is_tarfile(path):
            with _Watched(path, check) as file, tarfile.open(fileobj=file) as tape:
                yield _Tar(tape)
            return
    except _DAMAGED as error:
        raise invalid("damaged_archive") from error
    except OSError as error:
        if error.errno is None:
            raise invalid("damaged_archive") from error
        raise
    raise invalid("not_a_folder_or_archive")


class _Watched(io.BufferedReader):
    """A file whose reading can be broken off: to list a packed tar all of it is unpacked."""

    def __init__(self, path: Path, check: Check) -> None:
        super().__init__(io.FileIO(path))
        self._check = check

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        return super().read(size)


class _Folder:
    def __init__(self, root: Path, check: Check) -> None:
        self._root = root
        self._check = check

    def path(self, name: str) -> Path | None:
        return self._root / name

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder, folders, files in os.walk(self._root):
            self._check()
            here = Path(folder).relative_to(self._root)
            if len(here.parts) >= DEEPEST:
                folders.clear()
            for name in files:
                path = Path(folder) / name
                # A hub's own cache names its files by links; a link that leads nowhere is no file.
                if path.is_file():
                    found[(here / name).as_posix()] = path.stat().st_size
                if len(found) > MOST_FILES:
                    raise invalid("too_many_files")
        return found

    def read(self, name: str) -> Iterator[bytes]:
        with (self._root / name).open("rb") as file:
            yield from _blocks(file)


class _Zip:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def path(self, name: str) -> Path | None:  # noqa: ARG002 - it is in no folder
        return None

    def sizes(self) -> dict[str, int]:
        entries = self._archive.infolist()
        _check_count(len(entries), sum(entry.file_size for entry in entries))
        for entry in entries:
            kind = (entry.external_attr >> 16) & 0o170000
            if not is_safe_name(entry.filename) or kind not in (0, 0o100000, 0o040000):
                raise invalid("unsafe_archive")
            if entry.flag_bits & 1:
                raise invalid("encrypted_archive")
            if entry.file_size > MOST_RATIO * max(entry.compress_size, 1024):
                raise invalid("unsafe_archive")
        return {_clean(e.filename): e.file_size for e in entries if not e.is_dir()}

    def read(self, name: str) -> Iterator[bytes]:
        entry = next(e for e in self._archive.infolist() if _clean(e.filename) == name)
        with self._archive.open(entry) as file:
            yield from _blocks(file, entry.file_size)


class _Tar:
    def __init__(self, tape: tarfile.TarFile) -> None:
        self._tape = tape
        self._members: dict[str, tarfile.TarInfo] = {}

    def path(self, name: str) -> Path | None:  # noqa: ARG002 - it is in no folder
        return None

    def sizes(self) -> dict[str, int]:
        count = total = 0
        for member in self._tape:
            count, total = count + 1, total + member.size
            _check_count(count, total)
            if not is_safe_name(member.name) or not (member.isfile() or member.isdir()):
                raise invalid("unsafe_archive")
            if member.isfile():
                self._members[_clean(member.name)] = member
        return {name: member.size for name, member in self._members.items()}

    def read(self, name: str) -> Iterator[bytes]:
        file = self._tape.extractfile(self._members[name])
        if file is None:
            raise invalid("damaged_archive")
        with file:
            yield from _blocks(file, self._members[name].size)


def _check_count(count: int, total: int) -> None:
    if count > MOST_FILES or total > MOST_BYTES:
        raise invalid("archive_too_large")


def _clean(name: str) -> str:
    return PurePosixPath(name).as_posix()


def _blocks(file: IO[bytes], limit: int | None = None) -> Iterator[bytes]:
    """Yield a file in blocks; more than an archive announced for it is refused."""
    count = 0
    while block := file.read(_BLOCK):
        count += len(block)
        if limit is not None and count > limit:
            raise invalid("damaged_archive")
        yield block
