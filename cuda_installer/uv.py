"""The uv binary: where it is, and what it is told."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cuda_installer.children import Children, clean_environment
from cuda_installer.errors import InstallerError, tells_of_full_disk
from cuda_installer.flavours import Flavour
from cuda_installer.settings import RuntimeSettings
from cuda_installer.state import PYTHONS, SPLIT_LOCKS

EXE: Final = ".exe" if os.name == "nt" else ""
VERSION_SECONDS: Final = 10.0
VENV_SECONDS: Final = 120.0
INSTALL_SECONDS: Final = 4 * 3600.0
_LOCAL_VERSION: Final = re.compile(r"^[A-Za-z0-9._-]+==[^\s;\\]*\+")

# What uv writes when a step is over or under way → the stage that begins with it.
_STAGES: Final = (
    (re.compile(r"^Resolved \d+"), "downloading"),
    (re.compile(r"^(Downloading|Building|Downloaded|Built) "), "downloading"),
    (re.compile(r"^Prepared \d+"), "installing"),
    (re.compile(r"^Installed \d+"), "installing"),
)


def find_uv(settings: RuntimeSettings) -> Path | None:
    """Return a uv that runs, or None.

    One that is named in the settings is the only one tried. Otherwise: beside a frozen program, in
    the environment of this interpreter, on PATH.
    """
    if settings.uv:
        named = Path(settings.uv)
        return named if _runs(named) else None
    return next((candidate for candidate in _candidates() if _runs(candidate)), None)


def _candidates() -> Iterator[Path]:
    beside = Path(sys.executable).resolve().parent
    folders = [beside, beside / "_internal"] if getattr(sys, "frozen", False) else []
    folders.append(Path(sysconfig.get_path("scripts")))
    for folder in folders:
        if (folder / f"uv{EXE}").is_file():
            yield folder / f"uv{EXE}"
    on_path = shutil.which("uv")
    if on_path:
        yield Path(on_path)


def _runs(program: Path) -> bool:
    """Whether the program is a uv that runs here: a shim may lead nowhere."""
    try:
        answer = subprocess.run(
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.startswith(b"uv ")


@dataclass(frozen=True, slots=True)
class Uv:
    """uv with folders of its own: ``root`` holds its cache and the interpreters that it installs."""

    program: Path
    root: Path
    settings: RuntimeSettings
    children: Children

    @property
    def cache(self) -> Path:
        """Where finished packages stay, so that an interrupted installation goes on from them."""
        return self.root / "cache"

    @property
    def pythons(self) -> Path:
        """Where uv installs interpreters."""
        return self.root / PYTHONS

    @property
    def is_offline(self) -> bool:
        """Whether everything comes from a folder."""
        return bool(self.settings.wheelhouse)

    def _environment(self) -> dict[str, str]:
        return clean_environment(
            {
                "UV_NO_CONFIG": "1",
                "UV_CACHE_DIR": str(self.cache),
                "UV_PYTHON_INSTALL_DIR": str(self.pythons),
                "UV_PYTHON_DOWNLOADS": "manual",
            }
        )

    def _run(
        self,
        arguments: list[str],
        failure: str,
        timeout: float,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> None:
        command = [str(self.program), "--color", "never", *arguments]
        try:
            status, lines = self.children.run(
                command, environment=self._environment(), timeout=timeout, on_line=on_line
            )
        except TimeoutError:
            raise InstallerError(failure, "uv did not end in time") from None
        except OSError as error:
            raise InstallerError(failure, str(error)) from error
        if status != 0:
            # uv ends with one and the same status whatever the matter is.
            full = any(tells_of_full_disk(line) for line in lines)
            raise InstallerError("disk_full" if full else failure, "\n".join(lines[-12:]))

    def install_python(self, version: tuple[int, int]) -> None:
        """Let uv fetch a Python into its folder."""
        arguments = ["python", "install", f"{version[0]}.{version[1]}", "--no-bin"]
        if self.settings.python_mirror:
            arguments += ["--mirror", self.settings.python_mirror]
        self._run(arguments, "interpreter_missing", INSTALL_SECONDS)

    def make_environment(self, python: Path, folder: Path) -> None:
        """Make an empty virtual environment in *folder* with the interpreter *python*."""
        arguments = ["venv", "--no-project", "--python", str(python), str(folder)]
        self._run(arguments, "environment_failed", VENV_SECONDS)

    def install_lock(
        self, flavour: Flavour, python: Path, on_stage: Callable[[str, str], None]
    ) -> None:
        """Install a flavour's lock, every file checked against its hash.

        *on_stage* gets a stage's name and uv's line about it.
        """

        def on_line(line: str) -> None:
            for pattern, stage in _STAGES:
                if pattern.match(line):
                    on_stage(stage, line)

        general, special = split_lock(flavour.lock.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory(prefix=SPLIT_LOCKS, dir=self.root) as folder:
            if self.settings.wheelhouse or self.settings.extra_wheels or not special:
                parts = [(flavour.lock, self._general_index())]
            else:
                parts = []
                for name, text, index in (
                    ("special", special, self._special_index(flavour)),
                    ("general", general, self._general_index()),
                ):
                    part = Path(folder) / f"{name}.txt"
                    part.write_text(text, encoding="utf-8")
                    parts.append((part, index))
            for lock, index in parts:
                on_stage("resolving", "")
                arguments = ["pip", "install", "--python", str(python), "--require-hashes"]
                # A lock names everything, so that nothing is left to be resolved.
                arguments += ["--no-deps", "--requirement", str(lock), *index]
                self._run(arguments, "packages_unavailable", INSTALL_SECONDS, on_line)

    def _general_index(self) -> list[str]:
        if self.settings.wheelhouse:
            return ["--no-index", "--find-links", self.settings.wheelhouse]
        chosen = ["--default-index", self.settings.index] if self.settings.index else []
        if self.settings.extra_wheels:
            chosen += ["--find-links", self.settings.extra_wheels]
        return chosen

    def _special_index(self, flavour: Flavour) -> list[str]:
        index = self.settings.torch_index or flavour.torch_index
        return ["--default-index", index] if index else self._general_index()


def split_lock(text: str) -> tuple[str, str]:
    """Split a lock into what the general index has and what only torch's has.

    The latter are the versions with a local part. Asking each index for its own packages alone keeps
    one from answering for the other.
    """
    general: list[str] = []
    special: list[str] = []
    part = general
    for line in text.splitlines(keepends=True):
        if line.strip() and not line[0].isspace():
            part = special if _LOCAL_VERSION.match(line) else general
        part.append(line)
    return "".join(general), "".join(special)
