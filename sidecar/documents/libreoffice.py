"""Lets LibreOffice, where it is installed, turn an old presentation into one that can be read.

Used in the worker process. LibreOffice gets a profile of its own that forbids macros, links and the
network, and is ended with all that it started when the time is over or nobody wants the result.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from sidecar.documents.refusal import Refused
from sidecar.kernel.processes import child_environment, kill_tree

LIMIT_SECONDS: Final = 120.0
MOST_MEMORY: Final = 3 * 1024**3
_LOOK_SECONDS: Final = 0.1
_OUTPUT_LIMIT: Final = 256 * 1024 * 1024

_SETTINGS: Final = (
    ("Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Common/Save/Document", "LoadPrinter", "false"),
    ("Common/Misc", "FirstRun", "false"),
    ("Inet/Settings", "ooInetProxyType", "2"),
    # A proxy that nobody answers at: whatever a presentation links to is not fetched.
    ("Inet/Settings", "ooInetHTTPProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPProxyPort", "9"),
    ("Inet/Settings", "ooInetHTTPSProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPSProxyPort", "9"),
)
_PROFILE: Final = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
{items}</oor:items>
"""
_ITEM: Final = (
    '<item oor:path="/org.openoffice.{path}">'
    '<prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>\n'
)


def find_soffice(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the program, from PATH or where installers put it; None if it isn't installed."""
    for name in ("soffice", "libreoffice"):
        found = shutil.which(name, path=environment.get("PATH"))
        if found:
            return Path(found)
    return next((path for path in _usual_places(platform, environment) if path.is_file()), None)


def _usual_places(platform: str, environment: Mapping[str, str]) -> Iterator[Path]:
    if platform == "win32":
        for variable in ("PROGRAMFILES", "PROGRAMW6432", "PROGRAMFILES(X86)"):
            if environment.get(variable):
                # The one with .com waits for the end and needs no window.
                for program in ("soffice.com", "soffice.exe"):
                    yield Path(environment[variable], "LibreOffice", "program", program)
    elif platform == "darwin":
        home = environment.get("HOME", "/")
        for folder in ("/Applications", f"{home}/Applications"):
            yield Path(folder, "LibreOffice.app", "Contents", "MacOS", "soffice")
    else:
        yield Path("/usr/lib/libreoffice/program/soffice")
        yield Path("/usr/lib64/libreoffice/program/soffice")
        yield Path("/snap/bin/libreoffice")
        yield from sorted(Path("/opt").glob("libreoffice*/program/soffice"), reverse=True)


def to_pptx(path: Path, folder: Path, soffice: Path, check: Callable[[], None]) -> Path:
    """Return a PPTX file in *folder* with the content of the presentation at *path*.

    *folder* is empty, and the caller's to remove. *check* is called all along; what it raises ends
    the conversion. Raises :class:`Refused`.
    """
    profile, output = folder / "profile", folder / "output"
    make_profile(profile)
    source = folder / "presentation.ppt"
    shutil.copyfile(path, source)
    command = [
        str(soffice),
        "--headless",
        "--invisible",
        "--norestore",
        "--nolockcheck",
        "--nodefault",
        "--nologo",
        f"-env:UserInstallation={profile.as_uri()}",
        # Nothing else is tried with a file that isn't what it says.
        "--infilter=MS PowerPoint 97",
        "--convert-to",
        "pptx:Impress MS PowerPoint 2007 XML",
        "--outdir",
        str(output),
        str(source),
    ]
    _run(command, folder, check)
    result = output / "presentation.pptx"
    if not result.is_file() or result.stat().st_size > _OUTPUT_LIMIT:
        raise Refused("conversion_failed")
    return result


def make_profile(profile: Path) -> None:
    """Make the folder of a profile that forbids macros, links and the network."""
    (profile / "user").mkdir(parents=True)
    items = "".join(
        _ITEM.format(path=path, name=name, value=value) for path, name, value in _SETTINGS
    )
    text = _PROFILE.format(items=items)
    (profile / "user" / "registrymodifications.xcu").write_text(text, encoding="utf-8")


def _run(command: list[str], folder: Path, check: Callable[[], None]) -> None:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW
    until = time.monotonic() + LIMIT_SECONDS
    try:
        # It stays in this worker's process group, and so ends with it.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=child_environment({"SAL_USE_VCLPLUGIN": "svp"}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=flags,
        )
    except OSError as error:
        raise Refused("converter_missing") from error
    try:
        while True:
            try:
                process.wait(_LOOK_SECONDS)
                return
            except subprocess.TimeoutExpired:
                check()
            if time.monotonic() > until:
                raise Refused("took_too_long")
            if _memory_of_tree(process.pid) > MOST_MEMORY:
                raise Refused("too_complex")
    finally:
        if process.poll() is None:
            kill_tree(process.pid)
            process.wait()


def _memory_of_tree(pid: int) -> int:
    """Return how many bytes of memory a process and its descendants hold."""
    import psutil  # noqa: PLC0415 - in the worker alone

    held = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                held += process.memory_info().rss
    return held
