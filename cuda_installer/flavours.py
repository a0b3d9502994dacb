"""The kinds of runtime, and which one fits a machine.

A flavour is installed from a lock file that names every package by version and hash. One without a
lock is known and never chosen: an installation that can't be repeated isn't made.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cuda_installer.errors import InstallerError
from cuda_installer.machine import Machine

LOCKS_VARIABLE: Final = "CUDA_INSTALLER_LOCKS"
"""A folder with lock files that takes the place of the bundled ones."""

AUTO: Final = "auto"
MEGABYTE: Final = 1_000_000


Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Build:
    """A flavour on one platform.

    ``pythons`` are the versions that its lock has packages for, the preferred one first. ``driver``
    is the oldest NVIDIA driver that runs it; None where none is needed.
    """

    pythons: tuple[Version, ...]
    download_bytes: int
    disk_bytes: int
    driver: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Flavour:
    """One kind of runtime.

    ``builds`` has an entry for each platform that the lock has packages for. ``cuda`` is what
    ``torch.version.cuda`` says in it. ``torch_index`` serves the packages whose version has a local
    part (``2.13.0+cpu``); the general index has all others. ``prune`` names files that don't work
    in it and that nothing needs.
    """

    name: str
    cuda: str | None
    builds: dict[str, Build]
    torch_index: str | None = None
    prune: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        """The lock file; it may not exist."""
        return locks_folder() / f"{self.name}.txt"

    @property
    def is_locked(self) -> bool:
        """Whether this build has its lock."""
        return self.lock.is_file()

    def lock_digest(self) -> str:
        """Return the SHA-256 of the lock file: what an environment was made from."""
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

    def locked_versions(self) -> dict[str, str]:
        """Return the packages that the lock pins on some platform, by normalised name."""
        text = self.lock.read_text(encoding="utf-8")
        return {
            re.sub(r"[-_.]+", "-", name).lower(): version
            for name, version in re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^\s;\\]+)", text)
        }


# The general index has it for Linux linked against CUDA 13.0; its Python parts are all that is used.
_FOREIGN_TORCHAUDIO: Final = ("torchaudio/lib/*.so",)

# Sizes: packages as the index tells them; on disk as measured for cpu, for CUDA twice the download.
FLAVOURS: Final = (
    Flavour(
        "cu130",
        cuda="13.0",
        builds={
            "linux-x86_64": Build(
                pythons=((3, 11), (3, 12), (3, 13)),
                download_bytes=2870 * MEGABYTE,
                disk_bytes=5800 * MEGABYTE,
                driver=(580,),
            ),
            "windows-x86_64": Build(
                pythons=((3, 12), (3, 13)),
                download_bytes=2060 * MEGABYTE,
                disk_bytes=4200 * MEGABYTE,
                driver=(580,),
            ),
        },
        torch_index="https://download.pytorch.org/whl/cu130",
    ),
    Flavour(
        "cu126",
        cuda="12.6",
        builds={
            "linux-x86_64": Build(
                pythons=((3, 13),),
                download_bytes=3710 * MEGABYTE,
                disk_bytes=7500 * MEGABYTE,
                driver=(525, 60, 13),
            ),
            "windows-x86_64": Build(
                pythons=((3, 11),),
                download_bytes=2740 * MEGABYTE,
                disk_bytes=5500 * MEGABYTE,
                driver=(528, 33),
            ),
        },
        torch_index="https://download.pytorch.org/whl/cu126",
        prune=_FOREIGN_TORCHAUDIO,
    ),
    Flavour(
        "cpu",
        cuda=None,
        builds=dict.fromkeys(
            ("linux-x86_64", "windows-x86_64", "macos-aarch64"),
            Build(
                pythons=((3, 11),),
                download_bytes=337 * MEGABYTE,
                disk_bytes=1300 * MEGABYTE,
            ),
        ),
        torch_index="https://download.pytorch.org/whl/cpu",
        prune=_FOREIGN_TORCHAUDIO,
    ),
)


def locks_folder() -> Path:
    """Return the folder with the lock files."""
    told = os.environ.get(LOCKS_VARIABLE)
    return Path(told) if told else Path(__file__).resolve().parent / "locks"


def by_name(name: str) -> Flavour:
    """Return the flavour called *name*; InstallerError ``flavour_unknown``."""
    for flavour in FLAVOURS:
        if flavour.name == name:
            return flavour
    raise InstallerError("flavour_unknown", name)


def runs_on(flavour: Flavour, machine: Machine) -> bool:
    """Whether the machine's platform and driver are enough for the flavour."""
    build = flavour.builds.get(machine.platform)
    if build is None:
        return False
    return build.driver is None or (machine.driver is not None and machine.driver >= build.driver)


def is_supported(platform: str) -> bool:
    """Whether any flavour with a lock is for the platform."""
    return any(flavour.is_locked and platform in flavour.builds for flavour in FLAVOURS)


def choose(machine: Machine, wanted: str = AUTO) -> Flavour:
    """Return the wanted flavour, or the best one that runs on the machine and has a lock.

    A wanted flavour is taken although the driver is missing: it may come later. Raises
    InstallerError: ``platform_unsupported``, ``flavour_unknown`` or ``flavour_not_locked``.
    """
    if wanted != AUTO:
        flavour = by_name(wanted)
        if machine.platform not in flavour.builds:
            raise InstallerError("platform_unsupported", machine.platform)
        if not flavour.is_locked:
            raise InstallerError("flavour_not_locked", wanted)
        return flavour
    for flavour in FLAVOURS:
        if flavour.is_locked and runs_on(flavour, machine):
            return flavour
    raise InstallerError("platform_unsupported", machine.platform)


def passed_over(machine: Machine, chosen: Flavour) -> list[str]:
    """Return the better flavours that the machine could run but that have no lock here."""
    better = FLAVOURS[: FLAVOURS.index(chosen)]
    return [f.name for f in better if runs_on(f, machine) and not f.is_locked]
