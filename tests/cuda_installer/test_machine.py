"""What the machine is, and which runtime it gets."""

import os
import re
from pathlib import Path

import pytest

from cuda_installer import flavours
from cuda_installer.errors import EXPLANATIONS, InstallerError
from cuda_installer.machine import Machine, detect
from cuda_installer.texts import _REASONS_ZH, Texts
from cuda_installer.uv import split_lock

LINUX = "linux-x86_64"
LOCKED = sorted(flavour.name for flavour in flavours.FLAVOURS if flavour.is_locked)


def test_the_driver_is_asked_from_its_own_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 580.65.06\necho 580.65.06\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert detect().driver == (580, 65, 6)
    program.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit 9\n", encoding="utf-8")
    assert detect().driver is None


def test_the_environment_overrides_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_INSTALLER_DRIVER", "560.94")
    monkeypatch.setenv("CUDA_INSTALLER_PLATFORM", "windows-x86_64")
    assert detect() == Machine("windows-x86_64", (560, 94))
    monkeypatch.setenv("CUDA_INSTALLER_DRIVER", "none")
    assert detect().driver is None


@pytest.mark.parametrize(
    ("driver", "flavour"),
    [
        (None, "cpu"),
        ((450, 80), "cpu"),
        ((525, 60, 12), "cpu"),
        ((525, 60, 13), "cu126"),
        ((560, 94), "cu126"),
        ((580, 65, 6), "cu130"),
        ((600,), "cu130"),
    ],
)
def test_the_driver_decides(driver: tuple[int, ...] | None, flavour: str) -> None:
    machine = Machine(LINUX, driver)
    chosen = flavours.choose(machine)
    assert chosen.name == flavour
    assert flavours.passed_over(machine, chosen) == []


def test_a_flavour_without_a_lock_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.txt").write_bytes(flavours.by_name("cpu").lock.read_bytes())
    monkeypatch.setenv(flavours.LOCKS_VARIABLE, str(tmp_path))
    machine = Machine(LINUX, (560, 94))
    chosen = flavours.choose(machine)
    assert chosen.name == "cpu"
    assert flavours.passed_over(machine, chosen) == ["cu126"]
    with pytest.raises(InstallerError) as failure:
        flavours.choose(machine, "cu126")
    assert failure.value.reason == "flavour_not_locked"


def test_the_choice_can_be_overridden() -> None:
    assert flavours.choose(Machine(LINUX, (600,)), "cpu").name == "cpu"
    assert flavours.choose(Machine(LINUX, None), "cu130").name == "cu130"


@pytest.mark.parametrize(
    ("platform", "wanted", "reason"),
    [
        ("freebsd-x86_64", "auto", "platform_unsupported"),
        ("macos-x86_64", "auto", "platform_unsupported"),
        ("macos-aarch64", "cu130", "platform_unsupported"),
        (LINUX, "rocm", "flavour_unknown"),
    ],
)
def test_what_there_is_no_runtime_for(platform: str, wanted: str, reason: str) -> None:
    with pytest.raises(InstallerError) as failure:
        flavours.choose(Machine(platform, None), wanted)
    assert failure.value.reason == reason


def test_which_flavours_have_a_lock() -> None:
    assert LOCKED == ["cpu", "cu126", "cu130"]


@pytest.mark.parametrize(
    ("driver", "flavour"),
    [
        (None, "cpu"),
        ((527, 41), "cpu"),
        ((528, 33), "cu126"),
        ((576, 80), "cu126"),
        ((580, 88), "cu130"),
    ],
)
def test_the_driver_decides_on_windows(driver: tuple[int, ...] | None, flavour: str) -> None:
    machine = Machine("windows-x86_64", driver)
    assert flavours.choose(machine).name == flavour
    assert flavours.passed_over(machine, flavours.by_name(flavour)) == []


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_names_hashes_and_no_address(name: str) -> None:
    flavour = flavours.by_name(name)
    text = flavour.lock.read_text(encoding="utf-8")
    assert "://" not in text and "index" not in text
    pins = re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]
    assert len(pins) > 80
    for pin in pins:
        assert re.match(r"[A-Za-z0-9._-]+==\S+", pin), pin
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", pin), pin
    versions = flavour.locked_versions()
    assert versions["torch"].startswith("2.13.0")
    assert versions["pyannote-audio"] == "4.0.7"


def test_a_lock_is_split_by_index() -> None:
    text = flavours.by_name("cpu").lock.read_text(encoding="utf-8")
    general, special = split_lock(text)
    assert re.findall(r"(?m)^\S+==\S+", special) == ["torch==2.13.0+cpu"]
    assert "--hash=sha256:" in special
    assert sorted((general + special).splitlines()) == sorted(text.splitlines())


def test_every_reason_has_a_sentence_in_both_languages() -> None:
    assert set(_REASONS_ZH) == set(EXPLANATIONS)
    assert Texts("zh-CN").reason("disk_full") == "磁盘空间不足。"
    assert Texts("en_US.UTF-8").reason("disk_full") == EXPLANATIONS["disk_full"]
