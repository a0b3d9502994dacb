"""What every test can use."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar, launch
from tests.app_client import MODELS_DIR

pytest_plugins = ["pytester", "tests.contract.plugin"]

EVERY_TEST_VARIABLE = "REQUIRE_EVERY_TEST"
"""Set by the build server, which has all that tests need: a skipped test is a failure there."""

LaunchSidecar = Callable[..., Sidecar]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where everything is there that tests need, let none be skipped unnoticed."""
    report = yield
    if report.skipped and os.environ.get(EVERY_TEST_VARIABLE):
        report.outcome = "failed"
        report.longrepr = f"Skipped, though every test must run here: {report.longrepr}"
    return report


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
