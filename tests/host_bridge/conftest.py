"""Start the fake sidecar through the launcher."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar, launch

FAKE_SIDECAR = Path(__file__).resolve().parents[1] / "fakes" / "fake_sidecar.py"
FAKE_COMMAND = (sys.executable, str(FAKE_SIDECAR))

LaunchFake = Callable[..., Sidecar]


@pytest.fixture
def launch_fake() -> Iterator[LaunchFake]:
    """``launch_fake("good", path, **options)``; every sidecar is stopped after the test."""
    started: list[Sidecar] = []

    def start(mode: str, path: Path | None = None, **options: Any) -> Sidecar:
        arguments = [mode] if path is None else [mode, str(path)]
        sidecar = launch(FAKE_COMMAND, extra_args=arguments, **options)
        started.append(sidecar)
        return sidecar

    yield start
    for sidecar in started:
        sidecar.stop(1.0)
