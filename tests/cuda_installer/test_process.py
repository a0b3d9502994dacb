"""The installer as a program: what it prints, and how it ends."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_installer import state
from tests.app_client import ROOT
from tests.cuda_installer.conftest import Installer, is_gone, kill, uv_of
from tests.cuda_installer.packages import HoldingIndex, Wheelhouse

WAIT_SECONDS = 30


@pytest.fixture
def index(house: Wheelhouse) -> Iterator[HoldingIndex]:
    with HoldingIndex(house.wheels) as served:
        yield served


@pytest.fixture
def held(installer: Installer, house: Wheelhouse, index: HoldingIndex) -> "subprocess.Popen[str]":
    """An installation that waits for a package."""
    installer.environment = index.environment(house)
    process = installer.start("install", "--follow-stdin")
    assert index.asked.wait(WAIT_SECONDS)
    return process


def test_a_walk_through_the_commands(installer: Installer) -> None:
    assert installer.messages("detect")[0]["installed"] is None
    plan = installer.messages("plan")[-1]
    assert (plan["flavour"], plan["source"], plan["download_bytes"]) == ("cpu", "wheelhouse", 0)
    assert plan["needed_bytes"] > 1_000_000_000
    assert not installer.root.exists()
    told = installer.messages("install")
    stages = [message["stage"] for message in told if message["event"] == "stage"]
    assert list(dict.fromkeys(stages)) == [s for s in state.STAGES if s in stages]
    assert told[-1]["event"] == "installed"
    assert installer.messages("verify")[-1]["works"] is True
    assert installer.messages("detect")[0]["installed"]["torch"] == "2.13.0+cpu"
    assert installer.messages("remove")[-1]["freed_bytes"] > 0
    assert installer.messages("verify")[-1] == {
        "event": "failed",
        "reason": "not_installed",
        "technical": "",
        "figures": {},
    }


@pytest.mark.parametrize("command", ["install", "configure", "remove"])
def test_a_folder_that_cannot_be_written_to(installer: Installer, command: str) -> None:
    installer.root.parent.joinpath("file").touch()
    installer.root = installer.root.parent / "file" / "runtime"
    done = installer.run(command)
    if command == "remove":
        assert done.returncode == 0
    else:
        assert done.returncode == 1
        assert done.stderr.startswith("Failed: The environment could not be made.")
        assert "Traceback" not in done.stderr


def test_what_a_person_reads(installer: Installer) -> None:
    plan = installer.run("plan")
    assert plan.returncode == 0 and "Disk space needed: 1.3 GB" in plan.stdout
    done = installer.run("install")
    assert done.returncode == 0, done.stderr
    assert "torch: 2.13.0+cpu" in done.stdout
    assert "[#####################] 7/7 switching over" in done.stderr
    assert installer.run("configure", "--interpreter", "/opt/own/python").returncode == 0
    assert "Your own Python, used in its place: /opt/own/python" in installer.run("detect").stdout
    assert installer.run("configure", "--interpreter", "").returncode == 0
    installer.environment["LANG"] = "zh_CN.UTF-8"
    installer.environment["LC_ALL"] = ""
    assert "运行环境工作正常。" in installer.run("verify").stdout


def test_the_bar_of_a_terminal(installer: Installer) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cuda_installer", "--root", installer.root, "install"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, **installer.environment, "COLUMNS": "200", "LANG": "C.UTF-8"},
        cwd=ROOT,
    )
    os.close(theirs)
    shown = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            while chunk := terminal.read(4096):
                shown += chunk
        except OSError:
            # That is how a terminal tells that its program has ended.
            pass
    assert process.wait(WAIT_SECONDS) == 0
    text = shown.decode("utf-8")
    assert "\r\x1b[K[###------------------] 1/7 preparing" in text
    assert "%" not in text
    assert text.endswith("\n")


def test_settings_are_kept_and_can_be_overridden(installer: Installer, house: Wheelhouse) -> None:
    del installer.environment["CUDA_INSTALLER_WHEELHOUSE"]
    installer.messages("configure", "--wheelhouse", str(house.wheels), "--flavour", "cpu")
    stored = json.loads((installer.root / "settings.json").read_text(encoding="utf-8"))
    assert stored == {"flavour": "cpu", "wheelhouse": str(house.wheels)}
    assert installer.messages("plan")[-1]["source"] == "wheelhouse"
    assert installer.messages("plan", "--wheelhouse", "")[-1]["source"] == "index"
    failed = installer.run("plan", "--flavour", "cu126")
    assert failed.returncode == 1 and "no lock file" in failed.stderr


def test_an_installation_from_an_index(held: "subprocess.Popen[str]", index: HoldingIndex) -> None:
    index.released.set()
    assert held.stdout is not None
    # Its stdin stays open until it is done.
    assert json.loads(held.stdout.readlines()[-1])["event"] == "installed"


@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "SIGHUP", "end of stdin"])
def test_being_stopped(installer: Installer, held: "subprocess.Popen[str]", way: str) -> None:
    uv = uv_of(held)
    if way == "end of stdin":
        assert held.stdin is not None
        held.stdin.close()
    else:
        held.send_signal(getattr(signal, way))
    assert held.wait(WAIT_SECONDS) == 130
    assert is_gone(uv)
    last = installer.last()
    assert last is not None and (last["status"], last["stage"]) == ("interrupted", None)
    assert list((installer.root / state.ENVIRONMENTS).iterdir()) == []


def test_a_reader_that_is_gone(
    installer: Installer, held: "subprocess.Popen[str]", index: HoldingIndex
) -> None:
    """Who asked for it was killed: the next word of the installer reaches nobody."""
    uv = uv_of(held)
    assert held.stdout is not None
    held.stdout.close()
    index.released.set()
    held.wait(WAIT_SECONDS)
    assert is_gone(uv)
    last = installer.last()
    assert last is not None and (last.get("status"), last.get("reason")) == (
        "interrupted",
        "cancelled",
    )
    assert list((installer.root / state.ENVIRONMENTS).iterdir()) == []


@pytest.mark.proves("local-models.runtime.transaction")
def test_being_killed(
    installer: Installer, house: Wheelhouse, index: HoldingIndex, tmp_path: Path
) -> None:
    assert installer.messages("install")[-1]["event"] == "installed"
    shared = dict(installer.environment)
    # Nothing of the first installation is in the cache, so that the second one must ask.
    cache = installer.root / "cache"
    cache.rename(tmp_path / "cache")
    installer.environment = index.environment(house)
    process = installer.start("install")
    assert index.asked.wait(WAIT_SECONDS)
    uv = uv_of(process)
    last = installer.last()
    assert last is not None and last["status"] == "installing"
    assert last["stage"] in ("resolving", "downloading")
    assert installer.messages("install")[-1]["reason"] == "busy"
    kill(process)
    last = installer.last()
    assert last is not None and last["status"] == "interrupted"
    installer.environment = shared
    assert installer.messages("verify")[-1]["torch"] == "2.13.0+cpu"
    index.released.set()
    assert is_gone(uv)
    assert installer.messages("install")[-1]["event"] == "installed"
    assert len(list((installer.root / state.ENVIRONMENTS).iterdir())) == 1
