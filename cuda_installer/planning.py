"""What an installation would do, before it does anything."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_installer.children import Children
from cuda_installer.errors import InstallerError
from cuda_installer.flavours import Build, Flavour, choose, passed_over
from cuda_installer.interpreters import Interpreter, find
from cuda_installer.machine import Machine, detect
from cuda_installer.settings import RuntimeSettings
from cuda_installer.uv import Uv, find_uv


@dataclass(frozen=True, slots=True)
class Plan:
    """An installation that could begin. ``interpreter`` is None if uv has to fetch one.

    ``needed`` and ``free`` are bytes on the disk of the runtime's folder; ``passed_over`` names
    better flavours that this build has no lock for.
    """

    machine: Machine
    flavour: Flavour
    uv: Uv
    interpreter: Interpreter | None
    source: str
    download: int
    needed: int
    free: int
    passed_over: tuple[str, ...]

    @property
    def build(self) -> Build:
        """The flavour as it is for this machine."""
        return self.flavour.builds[self.machine.platform]

    @property
    def fits(self) -> bool:
        """Whether the disk has room for it."""
        return self.free >= self.needed

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        python = self.interpreter
        return {
            "platform": self.machine.platform,
            "driver": self.machine.driver_text,
            "flavour": self.flavour.name,
            "passed_over": list(self.passed_over),
            "source": self.source,
            "uv": str(self.uv.program),
            "python": str(python.path) if python else None,
            "python_version": ".".join(map(str, python.version)) if python else None,
            "download_bytes": self.download,
            "needed_bytes": self.needed,
            "free_bytes": self.free,
        }


def make_plan(root: Path, settings: RuntimeSettings, children: Children) -> Plan:
    """Look at the machine and the settings and say what would be installed, and from where.

    Downloads nothing; a Python from an archive is unpacked, for it can't be judged otherwise.
    Raises InstallerError if it can't be done.
    """
    machine = detect()
    flavour = choose(machine, settings.flavour)
    program = find_uv(settings)
    if program is None:
        raise InstallerError("uv_missing", settings.uv)
    for folder in (settings.wheelhouse, settings.extra_wheels):
        if folder and not Path(folder).is_dir():
            raise InstallerError("wheelhouse_missing", folder)
    uv = Uv(program, root, settings, children)
    build = flavour.builds[machine.platform]
    interpreter = find(build.pythons, uv)
    if interpreter is None and uv.is_offline:
        raise InstallerError("interpreter_missing")
    download = 0 if settings.wheelhouse else build.download_bytes
    return Plan(
        machine,
        flavour,
        uv,
        interpreter,
        source_name(settings),
        download,
        # The environment shares its files with uv's cache where the file system has hard links.
        build.disk_bytes + download,
        free_bytes(root),
        tuple(passed_over(machine, flavour)),
    )


def source_name(settings: RuntimeSettings) -> str:
    """Return ``wheelhouse``, ``mirror`` or ``index``."""
    if settings.wheelhouse:
        return "wheelhouse"
    return "mirror" if settings.index or settings.torch_index else "index"


def free_bytes(root: Path) -> int:
    """Return the room on the disk where *root* is, or will be."""
    folder = root
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
