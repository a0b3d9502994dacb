"""The fake sidecar's command, and the type of the fixture that launches it."""

import sys
from collections.abc import Callable
from pathlib import Path

from host_bridge.launcher import Sidecar

FAKE_COMMAND = (
    sys.executable,
    str(Path(__file__).resolve().parents[1] / "fakes" / "fake_sidecar.py"),
)

LaunchFake = Callable[..., Sidecar]
