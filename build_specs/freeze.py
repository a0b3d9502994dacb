"""Freeze the sidecar: ``python -m build_specs.freeze [--clean]``.

Leaves ``dist/sidecar/`` with the program ``sidecar`` (``sidecar.exe``), and ``dist/tauri/`` with
the same as a Tauri host bundles it. Needs the ``freeze``, ``speech``, ``pdf``, ``docx`` and ``math`` extras. A frozen program
runs on systems at least as new as the one it was made on: make releases on the oldest.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from build_specs.documents import MissingForDocuments, font_files, pango_binaries
from build_specs.tauri_layout import target_triple, write_tauri_layout
from build_specs.version_resource import version_resource
from host_bridge.errors import SidecarStartError
from host_bridge.launcher import launch
from sidecar.kernel.processes import plain_command
from sidecar.media.speakers.diarization import WORKER_MODULE
from sidecar.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("PyInstaller", "fastapi", "faster_whisper", "keyring", "weasyprint", "docx", "ziamath")
_VERSION_TIMEOUT_SECONDS = 120
_START_TIMEOUT_SECONDS = 120.0


class FreezeError(Exception):
    """The frozen program was not made, or does not work. The message says what to do."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; gives the exit status."""
    parser = argparse.ArgumentParser(prog="freeze", description="Freeze the sidecar.")
    parser.add_argument("--clean", action="store_true", help="forget what earlier runs cached")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the result goes")
    parser.add_argument("--target", help="target triple, where it is not this system's own")
    options = parser.parse_args(arguments)
    try:
        freeze(options.dist.resolve(), clean=options.clean, target=options.target)
    except FreezeError as error:
        print(f"freeze: {error}", file=sys.stderr)
        return 1
    return 0


def freeze(dist: Path, *, clean: bool, target: str | None = None) -> Path:
    """Make both layouts below ``dist``, print sizes and times, and give the program's path.

    Raises :class:`FreezeError`.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise FreezeError(f"not installed: {', '.join(missing)}; run `python dev.py install` first")
    started = time.monotonic()
    try:
        pango_binaries()
        font_files()
    except MissingForDocuments as error:
        raise FreezeError(str(error)) from error
    _run_pyinstaller(dist, clean=clean)
    executable = dist / "sidecar" / ("sidecar.exe" if sys.platform == "win32" else "sidecar")
    _check_version(executable)
    _check_plain_sources(executable)
    seconds = time.monotonic() - started
    triple = target or target_triple()
    bundled = write_tauri_layout(executable.parent, dist / "tauri", version=VERSION, triple=triple)
    ready_seconds = _check_start(bundled)
    print(f"frozen    {executable}")
    print(f"tauri     {bundled}")
    print(f"version   {VERSION}, {triple}")
    print(f"size      {folder_size(executable.parent) / 1e6:.0f} MB")
    print(f"time      {seconds:.0f} s, ready {ready_seconds:.2f} s after its first start")
    return executable


def folder_size(folder: Path) -> int:
    """The bytes of all files below a folder; links count nothing."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def _run_pyinstaller(dist: Path, *, clean: bool) -> None:
    work = ROOT / "build"
    if clean:
        for folder in (work, dist / "sidecar", dist / "tauri"):
            if folder.exists():
                shutil.rmtree(folder)
    work.mkdir(exist_ok=True)
    version_file = work / "version_resource.txt"
    version_file.write_text(version_resource(VERSION), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "PyInstaller",
        "--noconfirm",
        "--log-level",
        "WARN",
        "--distpath",
        str(dist),
        "--workpath",
        str(work),
        str(ROOT / "build_specs" / "sidecar.spec"),
    ]
    if clean:
        command.insert(3, "--clean")
    env = {
        **os.environ,
        "SIDECAR_VERSION_FILE": str(version_file),
        # The same source gives the same archive.
        "PYTHONHASHSEED": "1",
    }
    result = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False)
    if result.returncode:
        raise FreezeError(f"PyInstaller failed with exit status {result.returncode}")


def _check_start(executable: Path) -> float:
    """Start and stop it once: a library that was left out is missed here, not at a user's."""
    with tempfile.TemporaryDirectory(prefix="sidecar-freeze-") as data_dir:
        try:
            sidecar = launch(executable, data_dir=data_dir, ready_timeout=_START_TIMEOUT_SECONDS)
        except SidecarStartError as error:
            raise FreezeError(f"{executable} does not start: {error}") from error
        exit_code = sidecar.stop()
    if exit_code:
        raise FreezeError(f"{executable} ended with exit status {exit_code}: {sidecar.log_tail()}")
    return sidecar.process.ready_seconds


def _check_plain_sources(executable: Path) -> None:
    """What a foreign interpreter runs must be there as source, with all that it imports of ours."""
    bundle = executable.parent / "_internal"
    result = subprocess.run(
        plain_command(Path(sys.executable), WORKER_MODULE, write_bytecode=False, root=bundle),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=_VERSION_TIMEOUT_SECONDS,
        check=False,
    )
    if '"type":"ready"' not in result.stdout:
        raise FreezeError(f"{WORKER_MODULE} does not run from {bundle}\n{result.stderr.strip()}")


def _check_version(executable: Path) -> None:
    """It must tell the version of the source that it was made from."""
    try:
        result = subprocess.run(
            [str(executable), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=_VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FreezeError(f"{executable} does not run: {error}") from error
    if result.returncode or VERSION not in result.stdout:
        raise FreezeError(
            f"{executable} --version gave {result.stdout.strip()!r}"
            f" (exit status {result.returncode}), not {VERSION}\n{result.stderr.strip()}"
        )


if __name__ == "__main__":
    sys.exit(main())
