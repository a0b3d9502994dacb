"""The program itself, and what the system gives it: keyring, uv, graphics card."""

import importlib
import platform
import shutil
import sys
import threading
from pathlib import Path
from typing import Any, Final

from sidecar.doctor.findings import Finding, message
from sidecar.doctor.programs import output_of
from sidecar.kernel.credentials import Backend, CredentialStore
from sidecar.kernel.paths import DataPaths
from sidecar.version import VERSION

KEYRING_SECONDS: Final = 2.0
_DRIVER_FILE: Final = Path("/sys/module/nvidia/version")
_WINDOWS_SMI: Final = Path("C:/Windows/System32/nvidia-smi.exe")


def platform_name() -> str:
    """Return the system and the processor, for example ``linux-x86_64``."""
    return f"{sys.platform}-{platform.machine().lower()}"


def is_frozen() -> bool:
    """Whether this is a program that carries its own Python."""
    return bool(getattr(sys, "frozen", False))


def check_program() -> Finding:
    """Which program this is; always fine."""
    python = platform.python_version()
    details: dict[str, object] = {
        "version": VERSION,
        "frozen": is_frozen(),
        "executable": sys.executable,
        "python": python,
        "platform": platform_name(),
        "system": platform.platform(),
    }
    key = "program.frozen" if is_frozen() else "program.source"
    summary = message(key, version=VERSION, python=python, platform=platform_name())
    return Finding("ok", summary, None, details)


def check_credentials(paths: DataPaths) -> Finding:
    """Where secrets are kept; writes a value of our own to the keyring and removes it."""
    found: list[Backend] = []
    thread = threading.Thread(
        target=lambda: found.append(CredentialStore(paths.credentials).backend()), daemon=True
    )
    thread.start()
    thread.join(KEYRING_SECONDS)
    hint = message("credentials.hint")
    if not found:
        details: dict[str, object] = {"backend": "file", "answered": False}
        return Finding("warning", message("credentials.unanswered"), hint, details)
    details = {"backend": found[0], "answered": True}
    if found[0] == "keyring":
        import keyring  # noqa: PLC0415 - not needed elsewhere

        details["keyring"] = keyring.get_keyring().name
        summary = message("credentials.keyring", name=details["keyring"])
        return Finding("ok", summary, None, details)
    summary = message("credentials.file", folder=paths.credentials)
    return Finding("warning", summary, hint, details)


def check_uv() -> Finding:
    """Whether uv, which installs the managed runtime, is there."""
    program = _find_uv()
    if program is None:
        hint = message("uv.hint", command="pip install uv")
        return Finding("missing", message("uv.absent"), hint, {"path": None, "version": None})
    answer = (output_of([program, "--version"]) or "").split()
    details: dict[str, object] = {"path": program, "version": None}
    if len(answer) < 2:
        summary = message("uv.unusable", path=program)
        return Finding("warning", summary, message("uv.hint", command="pip install uv"), details)
    details["version"] = answer[1]
    return Finding("ok", message("uv.present", version=answer[1], path=program), None, details)


def _find_uv() -> str | None:
    name = "uv.exe" if sys.platform == "win32" else "uv"
    beside = Path(sys.executable).with_name(name)
    if beside.is_file():
        return str(beside)
    try:
        package: Any = importlib.import_module("uv")
        return str(package.find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv")


def check_gpu() -> Finding:
    """Whether an NVIDIA card can be used; without one everything runs on the processor."""
    cards = _cards()
    driver = cards[0]["driver"] if cards else _driver_version()
    details: dict[str, object] = {"cards": cards, "driver": driver}
    if cards:
        listed = ", ".join(f"{card['name']} ({card['memory']})" for card in cards)
        return Finding("ok", message("gpu.present", cards=listed, driver=driver), None, details)
    if driver is not None:
        summary = message("gpu.driver_only", driver=driver)
        return Finding("warning", summary, message("gpu.driver_only.hint"), details)
    return Finding("missing", message("gpu.absent"), message("gpu.absent.hint"), details)


def _cards() -> list[dict[str, str]]:
    program = shutil.which("nvidia-smi")
    if program is None and sys.platform == "win32" and _WINDOWS_SMI.is_file():
        program = str(_WINDOWS_SMI)
    if program is None:
        return []
    query = ("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    return parse_cards(output_of([program, *query]) or "")


def parse_cards(listing: str) -> list[dict[str, str]]:
    """Return name, driver and memory of each card in the tool's answer: one line a card, by commas."""
    rows = [[cell.strip() for cell in line.split(",")] for line in listing.splitlines()]
    return [{"name": row[0], "driver": row[1], "memory": row[2]} for row in rows if len(row) == 3]


def _driver_version() -> str | None:
    try:
        return _DRIVER_FILE.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
