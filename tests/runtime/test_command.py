"""``sidecar runtime``: the installer, for the app's own data directory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app_client import ROOT


def sidecar(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "sidecar", *words],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_the_runtime_of_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_DATA_DIR", str(tmp_path / "data"))
    done = sidecar("runtime", "install", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.splitlines()[-1])["environment"]
    assert (tmp_path / "data" / "runtime" / "environments" / made["name"]).is_dir()
    assert "torch: 2.13.0+cpu" in sidecar("runtime", "verify").stdout
    assert sidecar("runtime", "remove").returncode == 0
    assert sidecar("runtime", "verify").returncode == 1


def test_it_is_among_the_commands() -> None:
    assert "runtime" in sidecar("--help").stdout
    assert "install" in sidecar("runtime", "--help").stdout
    assert sidecar("runtime").returncode == 2
