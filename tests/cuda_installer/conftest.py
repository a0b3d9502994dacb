"""A small runtime, and the installer as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuda_installer.children import Children
from cuda_installer.settings import RuntimeSettings
from tests.app_client import ROOT
from tests.cuda_installer.packages import Wheelhouse, small_runtime

RUN_SECONDS = 60


@dataclass
class Installer:
    """Runs ``python -m cuda_installer`` for one runtime."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "cuda_installer", "--root", str(self.root), *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self._command(words),
            capture_output=True,
            encoding="utf-8",
            timeout=RUN_SECONDS,
            env={**os.environ, **self.environment, "PYTHONUTF8": "1"},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def messages(self, *words: str) -> list[dict[str, Any]]:
        """Run a command and return the messages that it writes."""
        done = self.run(*words, "--json")
        assert done.stderr == ""
        return [json.loads(line) for line in done.stdout.splitlines()]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command whose messages are to be read while it runs."""
        process = subprocess.Popen(
            self._command((*words, "--json")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **self.environment},
            cwd=ROOT,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def last(self) -> dict[str, Any] | None:
        """How the last installation went, as ``detect`` tells."""
        last: dict[str, Any] | None = self.messages("detect")[0]["last"]
        return last

    def end(self) -> None:
        """End what a test left running."""
        for process in self.started:
            for child in _tree(process.pid):
                child.kill()
            process.kill()
            process.wait(10)
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def uv_of(process: subprocess.Popen[str]) -> psutil.Process:
    """Return the uv that an installer runs now."""
    found = [child for child in _tree(process.pid) if child.name() == "uv"]
    assert len(found) == 1, found
    return found[0]


def is_gone(process: psutil.Process) -> bool:
    """Wait until a process is gone."""
    try:
        process.wait(10)
    except psutil.TimeoutExpired:
        return False
    return True


def kill(process: subprocess.Popen[str]) -> None:
    """Kill the installer alone, without a word."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)


@pytest.fixture
def house(tmp_path: Path) -> Wheelhouse:
    """The packages of a small runtime."""
    return small_runtime(tmp_path)


@pytest.fixture
def installer(tmp_path: Path, house: Wheelhouse) -> Iterator[Installer]:
    """An installer that takes everything from the small wheelhouse."""
    made = Installer(tmp_path / "runtime", house.environment())
    yield made
    made.end()


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Sets variables for calls in this process."""

    def set_all(variables: dict[str, str]) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture
def settings(house: Wheelhouse, use: Callable[[dict[str, str]], None]) -> RuntimeSettings:
    """The settings of the small runtime, for calls in this process."""
    use(house.environment())
    return RuntimeSettings().with_environment()


@pytest.fixture
def children() -> Children:
    """Runs child programs."""
    return Children()
