"""What surrounds the frozen program: names, manifest, version resource."""

import json
import plistlib
import sys
from pathlib import Path

import pytest

from build_specs.freeze import folder_size
from build_specs.tauri_layout import MANIFEST_NAME, target_triple, write_tauri_layout
from build_specs.version_resource import version_resource
from host_bridge.protocol import PROTOCOL_VERSION

SPECS = Path(__file__).resolve().parents[2] / "build_specs"


@pytest.mark.parametrize(
    ("system", "machine", "triple"),
    [
        ("linux", "x86_64", "x86_64-unknown-linux-gnu"),
        ("linux", "aarch64", "aarch64-unknown-linux-gnu"),
        ("win32", "AMD64", "x86_64-pc-windows-msvc"),
        ("darwin", "arm64", "aarch64-apple-darwin"),
    ],
)
def test_target_triples(system: str, machine: str, triple: str) -> None:
    assert target_triple(system, machine) == triple


def test_an_unknown_system_has_no_triple() -> None:
    with pytest.raises(ValueError, match="plan9"):
        target_triple("plan9", "x86_64")


@pytest.mark.parametrize(
    ("triple", "suffix"), [("x86_64-unknown-linux-gnu", ""), ("x86_64-pc-windows-msvc", ".exe")]
)
def test_the_tauri_layout_names_its_program(tmp_path: Path, triple: str, suffix: str) -> None:
    frozen = tmp_path / "sidecar"
    (frozen / "_internal").mkdir(parents=True)
    (frozen / f"sidecar{suffix}").write_bytes(b"program")
    (frozen / "_internal" / "library").write_bytes(b"library")
    output = tmp_path / "tauri"
    write_tauri_layout(frozen, output, version="1.2.2", triple=triple)
    executable = write_tauri_layout(frozen, output, version="1.2.3", triple=triple)
    assert executable.name == f"sidecar-{triple}{suffix}"
    assert executable.read_bytes() == b"program"
    assert (executable.parent / "_internal" / "library").read_bytes() == b"library"
    assert (frozen / f"sidecar{suffix}").exists()
    manifest = json.loads((output / MANIFEST_NAME).read_text(encoding="utf-8"))
    assert output / manifest["executable"] == executable
    assert (manifest["version"], manifest["target"]) == ("1.2.3", triple)
    assert manifest["protocol"] == PROTOCOL_VERSION


@pytest.mark.parametrize(
    ("version", "numbers", "flags"),
    [("1.2.3", "(1, 2, 3, 0)", "0x0"), ("2.0rc1", "(2, 0, 0, 0)", "0x2")],
)
def test_the_version_resource_is_what_pyinstaller_reads(
    version: str, numbers: str, flags: str
) -> None:
    text = version_resource(version)
    assert f"filevers={numbers}" in text
    assert f"flags={flags}" in text
    assert f"StringStruct('ProductVersion', '{version}')" in text.replace('"', "'")
    compile(text, "version_resource.txt", "eval")


def test_a_version_without_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with a number"):
        version_resource("latest")


def test_the_entitlements_are_a_property_list() -> None:
    content = (SPECS / "entitlements.plist").read_bytes()
    assert all(value is True for value in plistlib.loads(content).values())


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_count_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert folder_size(tmp_path) == 4
