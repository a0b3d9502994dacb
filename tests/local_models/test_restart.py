"""A real process that is killed, or stopped, in the middle of a download."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar
from tests.conftest import LaunchSidecar
from tests.fakes.model_source import ModelSource
from tests.local_models.conftest import CONTENTS, MODEL, write_catalogue
from tests.protocol.frames import replay
from tests.protocol.live import client_of, eventually

PATH = f"/api/local-models/{MODEL}"
WEIGHTS = f"/test/{MODEL}/resolve/main/model.bin"


def model_of(sidecar: Sidecar) -> dict[str, Any]:
    with client_of(sidecar.base_url, sidecar.session_token) as client:
        items = client.get("/api/local-models", params={"limit": 200}).json()["items"]
    found: dict[str, Any] = next(item for item in items if item["model_id"] == MODEL)
    return found


def ended(sidecar: Sidecar) -> dict[str, Any]:
    def check() -> dict[str, Any] | None:
        model = model_of(sidecar)
        return model if model["status"] != "downloading" else None

    return eventually(check, "the end of the download")


@pytest.mark.proves(
    "local-models.download.restart",
    "local-models.download.resumes",
    "local-models.events.resume",
)
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_download_is_taken_up_again(
    launch_sidecar: LaunchSidecar,
    tmp_path: Path,
    sources: tuple[ModelSource, ModelSource],
    end: str,
) -> None:
    source, _ = sources
    models = tmp_path / "data" / "models"
    write_catalogue(models, [each.url for each in sources])
    gate = source.files[WEIGHTS].gate = threading.Event()
    first = launch_sidecar(models=False)
    with client_of(first.base_url, first.session_token) as client:
        assert client.post(f"{PATH}/download").status_code == 202
        part = models / ".staging" / MODEL / "download" / "model.bin.part"
        eventually(lambda: part.exists() and part.stat().st_size > 0, "some bytes")
    held = part.stat().st_size
    if end == "kill":
        os.kill(first.pid, signal.SIGKILL)
    first.stop()
    assert not (models / MODEL).exists()
    source.files[WEIGHTS].gate = None
    gate.set()

    second = launch_sidecar(models=False)
    model = ended(second)
    assert (model["status"], model["download"]["status"]) == ("installed", "completed")
    assert (models / MODEL / "model.bin").read_bytes() == CONTENTS["model.bin"]
    asked = [each.range for each in source.asked if each.path == WEIGHTS]
    assert asked[-1] == f"bytes={held}-"
    with client_of(second.base_url, second.session_token) as client:
        frames = replay(client, f"{PATH}/events")
        assert [frame.event for frame in frames if frame.event != "Progress"] == [
            "Queued",
            "Completed",
        ]
        rest = replay(client, f"{PATH}/events", after=frames[1].sequence)
        assert rest == frames[2:]
