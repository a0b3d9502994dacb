"""Lay the frozen folder out as a Tauri host bundles it.

Tauri's ``externalBin`` takes a single file and would leave the libraries behind, so the folder goes
under ``bundle.resources``::

    {"bundle": {"resources": {"../path/to/dist/tauri/": "sidecar/"}}}

The host reads ``sidecar/sidecar.json`` from its resource folder and spawns the ``executable`` that
it names, relative to itself, with pipes. Folder and program carry the target triple, as
``externalBin`` programs do, so that builds for several systems can lie side by side.
"""

import json
import os
import platform
import shutil
import sys
from pathlib import Path

from host_bridge.protocol import PROTOCOL_VERSION

MANIFEST_NAME = "sidecar.json"

_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
_SYSTEMS = {"linux": "unknown-linux-gnu", "win32": "pc-windows-msvc", "darwin": "apple-darwin"}


def target_triple(system: str = sys.platform, machine: str | None = None) -> str:
    """The Rust name of a system. Raises ValueError for one that nobody builds for."""
    name = (machine or platform.machine()).lower()
    if name not in _MACHINES or system not in _SYSTEMS:
        raise ValueError(f"no target triple is known for {system} on {name}")
    return f"{_MACHINES[name]}-{_SYSTEMS[system]}"


def write_tauri_layout(frozen: Path, output: Path, *, version: str, triple: str) -> Path:
    """Make ``output`` anew from the frozen folder and give the program's path in it.

    Files are hard links where the file system has them: the bundle is large.
    """
    if output.exists():
        shutil.rmtree(output)
    output.mkdir(parents=True)
    suffix = ".exe" if "-windows-" in triple else ""
    name = f"sidecar-{triple}"
    shutil.copytree(frozen, output / name, symlinks=True, copy_function=_link_or_copy)
    executable = output / name / f"{name}{suffix}"
    (output / name / f"sidecar{suffix}").rename(executable)
    manifest = {
        "name": "sidecar",
        "version": version,
        "protocol": PROTOCOL_VERSION,
        "target": triple,
        "executable": executable.relative_to(output).as_posix(),
        "arguments": ["serve"],
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (output / MANIFEST_NAME).write_text(text, encoding="utf-8")
    return executable


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
