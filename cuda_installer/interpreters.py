"""Finds the Python that an environment is made with, or has one installed."""

import hashlib
import json
import lzma
import os
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cuda_installer.children import Children, clean_environment
from cuda_installer.errors import InstallerError, of_os_error
from cuda_installer.flavours import Version
from cuda_installer.state import UNFINISHED
from cuda_installer.uv import Uv

QUESTION_SECONDS: Final = 20.0
# What a cut or damaged archive, or one of a kind that isn't known, ends with.
_UNREADABLE: Final = (
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
_QUESTION: Final = (
    "import json, sys; print(json.dumps({'version': sys.version_info[:2],"
    " 'path': getattr(sys, '_base_executable', None) or sys.executable,"
    " 'wide': sys.maxsize > 2**32, 'kind': sys.implementation.name}))"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that runs: the program itself, never a virtual environment's link to it."""

    path: Path
    version: Version


def ask(program: Path, children: Children) -> Interpreter | None:
    """Return what an interpreter says of itself; None if it isn't a 64-bit CPython that runs."""
    try:
        status, lines = children.run(
            [program, "-I", "-B", "-c", _QUESTION],
            environment=clean_environment({}),
            timeout=QUESTION_SECONDS,
        )
        said = json.loads(lines[-1]) if status == 0 and lines else None
    except (OSError, TimeoutError, ValueError):
        return None
    if not isinstance(said, dict) or not said["wide"] or said["kind"] != "cpython":
        return None
    return Interpreter(Path(said["path"]), (said["version"][0], said["version"][1]))


def find(pythons: Sequence[Version], uv: Uv) -> Interpreter | None:
    """Return an interpreter that is on the machine or in the archive, or None; the first version is preferred.

    A named one that doesn't do is an InstallerError ``interpreter_unusable`` or ``archive_invalid``.
    """
    settings, children = uv.settings, uv.children
    if settings.python:
        named = ask(Path(settings.python), children)
        if named is None or named.version not in pythons:
            raise InstallerError("interpreter_unusable", settings.python)
        return named
    if settings.python_archive:
        return _from_archive(Path(settings.python_archive), pythons, uv)
    usable: list[Interpreter] = []
    for program in _programs(pythons, uv):
        found = ask(program, children)
        if found is None or found.version not in pythons:
            continue
        if found.version == pythons[0]:
            return found
        usable.append(found)
    return min(usable, key=lambda one: pythons.index(one.version), default=None)


def find_or_install(pythons: Sequence[Version], uv: Uv) -> Interpreter:
    """Return an interpreter of one of the versions, the first one fetched by uv if there is none.

    InstallerError ``interpreter_missing`` if uv can't, or mustn't because everything comes from a
    folder.
    """
    found = find(pythons, uv)
    if found is None and not uv.is_offline:
        uv.install_python(pythons[0])
        found = find(pythons, uv)
    if found is None:
        wanted = ", ".join(f"{major}.{minor}" for major, minor in pythons)
        raise InstallerError("interpreter_missing", f"wanted: {wanted}")
    return found


def _programs(pythons: Sequence[Version], uv: Uv) -> Iterator[Path]:
    """Yield interpreters that may do: uv's own, this one, and those on PATH."""
    yield from _inside(uv.pythons, pythons)
    if not getattr(sys, "frozen", False):
        yield Path(sys.executable)
    for major, minor in pythons:
        for name in (f"python{major}.{minor}", "python3", "python"):
            on_path = shutil.which(name)
            if on_path:
                yield Path(on_path)


def _inside(folder: Path, pythons: Sequence[Version]) -> Iterator[Path]:
    """Yield the interpreters of a folder with unpacked Pythons."""
    for major, minor in pythons:
        names = ("python.exe",) if os.name == "nt" else (f"bin/python{major}.{minor}",)
        for name in names:
            for depth in ("", "*/", "*/*/"):
                yield from sorted(folder.glob(depth + name))


def _from_archive(archive: Path, pythons: Sequence[Version], uv: Uv) -> Interpreter:
    try:
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise InstallerError("archive_invalid", str(error)) from error
    folder = uv.pythons / f"archive-{digest}"
    if not folder.is_dir():
        draft = folder.with_name(f"{folder.name}{UNFINISHED}")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            _unpack(archive, draft)
            draft.rename(folder)
        except _UNREADABLE as error:
            shutil.rmtree(draft, ignore_errors=True)
            if isinstance(error, OSError) and (failure := of_os_error(error)).reason == "disk_full":
                raise failure from error
            raise InstallerError("archive_invalid", str(error)) from error
    for program in _inside(folder, pythons):
        found = ask(program, uv.children)
        if found is not None and found.version in pythons:
            return found
    # Nothing else would ever take it away.
    shutil.rmtree(folder, ignore_errors=True)
    raise InstallerError("archive_invalid", str(archive))


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                # extract() keeps names inside the folder, but forgets what may be run.
                unpacked = Path(packed.extract(entry, folder))
                mode = entry.external_attr >> 16
                if mode and not entry.is_dir():
                    unpacked.chmod(mode & 0o777)
        return
    with tarfile.open(archive) as packed_tar:
        # Refuses names and links that lead out of the folder.
        packed_tar.extractall(folder, filter="data")
