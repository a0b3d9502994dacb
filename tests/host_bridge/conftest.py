"""Start the fake sidecar through the launcher."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar, launch
from tests.host_bridge.fake import FAKE_COMMAND, LaunchFake


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
