"""What this machine is: its platform, and the NVIDIA driver that it has."""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PLATFORM_VARIABLE: Final = "CUDA_INSTALLER_PLATFORM"
DRIVER_VARIABLE: Final = "CUDA_INSTALLER_DRIVER"
"""Say what the machine is, where it can't or shan't be looked at; a driver of ``none`` is none."""

KERNEL_MODULE: Final = Path("/sys/module/nvidia/version")
NVIDIA_SMI_SECONDS: Final = 10.0
_MACHINES: Final = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
_SYSTEMS: Final = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_VERSION: Final = re.compile(r"^\s*(\d+(?:\.\d+){0,3})\s*$")


@dataclass(frozen=True, slots=True)
class Machine:
    """``platform`` is such as ``linux-x86_64``; ``driver`` the NVIDIA driver's version, if any."""

    platform: str
    driver: tuple[int, ...] | None

    @property
    def driver_text(self) -> str | None:
        """The driver's version as it is written."""
        return ".".join(map(str, self.driver)) if self.driver else None


def detect() -> Machine:
    """Look at the machine; runs nvidia-smi where it is there, and nothing else."""
    return Machine(platform_name(), _driver())


def platform_name() -> str:
    """Return system and processor, as flavours name them."""
    told = os.environ.get(PLATFORM_VARIABLE)
    if told:
        return told
    machine = platform.machine().lower()
    system = _SYSTEMS.get(sys.platform, sys.platform)
    return f"{system}-{_MACHINES.get(machine, machine)}"


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a version such as ``580.65.06``; None for anything else."""
    found = _VERSION.match(text)
    return tuple(int(part) for part in found[1].split(".")) if found else None


def _driver() -> tuple[int, ...] | None:
    told = os.environ.get(DRIVER_VARIABLE)
    if told is not None:
        return parse_version(told)
    return _driver_of_nvidia_smi() or _driver_of_kernel()


def _driver_of_nvidia_smi() -> tuple[int, ...] | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        answer = subprocess.run(
            [program, "--query-gpu=driver_version", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=NVIDIA_SMI_SECONDS,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        # A driver that doesn't answer is no driver to compute with.
        return None
    lines = answer.stdout.splitlines() if answer.returncode == 0 else []
    return next((version for line in lines if (version := parse_version(line))), None)


def _driver_of_kernel() -> tuple[int, ...] | None:
    try:
        return parse_version(KERNEL_MODULE.read_text(encoding="utf-8"))
    except OSError:
        return None
