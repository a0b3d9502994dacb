"""Sidecar processes for the tests of the host protocol."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.serving import MODEL_ARGUMENTS, Serving

Start = Callable[..., Serving]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Start]:
    """Starts processes without waiting for them; whatever is left of them is ended afterwards."""
    started: list[Serving] = []

    def make(folder: Path | None = None, **options: Any) -> Serving:
        serving = Serving(folder or tmp_path, **options)
        started.append(serving)
        return serving

    yield make
    for serving in started:
        serving.end()


@pytest.fixture
def start(spawn: Start) -> Start:
    """Starts processes and waits until each is ready."""

    def make(folder: Path | None = None, **options: Any) -> Serving:
        return spawn(folder, **options).wait_ready()

    return make


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One process for all tests of a module, with a vault open; they only send it requests."""
    folder = tmp_path_factory.mktemp("serving")
    (folder / "vault").mkdir()
    settings = {"vault_path": str(folder / "vault")}
    shared = Serving(folder, settings=settings, arguments=MODEL_ARGUMENTS)
    try:
        yield shared.wait_ready()
        assert shared.popen.poll() is None, "a test of this module ended the shared process"
    finally:
        shared.end()


@pytest.fixture
def unprivileged() -> tuple[str, ...]:
    """The command of a sidecar that must obey file permissions, also where the tests run as root."""
    command = (sys.executable, "-m", "sidecar")
    if os.geteuid() != 0:
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("root obeys no permissions, and setpriv is not here to take that away")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *command)
