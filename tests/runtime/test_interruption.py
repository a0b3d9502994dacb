"""The server stops or is killed in the middle of an installation. Real processes."""

import json
import os
import signal
from collections.abc import Callable

import psutil
import pytest

from host_bridge.launcher import Sidecar
from tests.conftest import LaunchSidecar
from tests.cuda_installer.conftest import is_gone
from tests.cuda_installer.packages import HoldingIndex
from tests.protocol.live import eventually
from tests.runtime.conftest import PATH


def status(sidecar: Sidecar) -> str:
    found: str = sidecar.get(PATH).check().json()["status"]
    return found


def installing(sidecar: Sidecar, held: HoldingIndex) -> list[psutil.Process]:
    """Begin an installation and return the processes of it once it waits for a package."""
    eventually(lambda: status(sidecar) != "checking", "the first look")
    assert sidecar.post(PATH).status == 202
    assert held.asked.wait(30)
    assert status(sidecar) == "installing"
    assert sidecar.pid is not None
    found = psutil.Process(sidecar.pid).children(recursive=True)
    names = [process.name() for process in found]
    assert "uv" in names and len(found) >= 2
    return found


def stop(sidecar: Sidecar) -> None:
    sidecar.stop()


def kill(sidecar: Sidecar) -> None:
    assert sidecar.pid is not None
    process = psutil.Process(sidecar.pid)
    os.kill(process.pid, signal.SIGKILL)
    assert is_gone(process)


@pytest.mark.proves(
    "local-models.runtime.shutdown-kills-installer",
    "local-models.runtime.interrupted",
    "local-models.runtime.events-interrupted",
    "local-models.runtime.install-after-failure",
)
@pytest.mark.parametrize("end", [stop, kill])
def test_an_interrupted_installation(
    launch_sidecar: LaunchSidecar, held: HoldingIndex, end: Callable[[Sidecar], None]
) -> None:
    sidecar = launch_sidecar()
    processes = installing(sidecar, held)
    end(sidecar)
    assert all(is_gone(process) for process in processes)
    sidecar = launch_sidecar()
    eventually(lambda: status(sidecar) != "checking", "the first look")
    found = sidecar.get(PATH).check().json()
    assert (found["status"], found["stage"]) == ("interrupted", None)
    assert found["error"]["code"] == "RUNTIME_INSTALL_INTERRUPTED"
    assert sidecar.pid is not None
    assert psutil.Process(sidecar.pid).children() == []
    text = sidecar.get(f"{PATH}/events").check().text
    assert text.count("event: Failed") == 1 and "event: Completed" not in text
    last = json.loads(text.split("event: Failed\ndata: ")[1].splitlines()[0])
    assert last["data"]["error"]["code"] == "RUNTIME_INSTALL_INTERRUPTED"
    held.released.set()
    assert sidecar.post(PATH).status == 202
    eventually(lambda: status(sidecar) == "installed", "the installation")
