"""What every test can use."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar, launch
from tests.app_client import MODELS_DIR

pytest_plugins = ["pytester", "tests.contract.plugin"]

LaunchSidecar = Callable[..., Sidecar]


@pytest.fixture
def launch_sidecar(tmp_path: Path) -> Iterator[LaunchSidecar]:
    """Launches real sidecar processes; what still runs at the test's end is stopped."""
    launched: list[Sidecar] = []

    def start(*, models: bool = True, **options: Any) -> Sidecar:
        options.setdefault("data_dir", tmp_path / "data")
        if models:
            extra = options.pop("extra_args", ())
            options["extra_args"] = (*extra, "--models-dir", str(MODELS_DIR))
        sidecar = launch(**options)
        launched.append(sidecar)
        return sidecar

    yield start
    for sidecar in launched:
        sidecar.stop()


@pytest.fixture
def sidecar(launch_sidecar: LaunchSidecar, tmp_path: Path) -> Sidecar:
    """One real sidecar process with an empty vault open."""
    vault = tmp_path / "vault"
    vault.mkdir()
    started = launch_sidecar()
    started.host_post("/host/vault", json={"path": str(vault)})
    return started
