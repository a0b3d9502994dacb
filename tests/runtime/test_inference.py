"""Installations and inference keep out of each other's way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cuda_installer.packages import HoldingIndex
from tests.protocol.jobs import Jobs
from tests.protocol.live import LiveApp, error_of, eventually
from tests.runtime.conftest import PATH

KIND = "transcription"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveApp]:
    app = LiveApp(tmp_path / "live")
    eventually(lambda: status(app) != "checking", "the first look")
    yield app
    app.stop()


def status(app: LiveApp) -> str:
    found: str = app.session.get(PATH).raise_for_status().json()["status"]
    return found


def refused(app: LiveApp) -> None:
    answer = app.session.post(PATH)
    assert answer.status_code == 409 and error_of(answer)["code"] == "MODEL_IN_USE"
    assert status(app) == "not_installed"
    assert not (app.data_dir / "runtime").exists()


@pytest.mark.proves("local-models.runtime.install-model-in-use")
def test_while_an_inference_runs(live: LiveApp) -> None:
    with live.holding(KIND) as hold:
        hold.running(Jobs(live, KIND).new()["job_id"])
        refused(live)
    assert live.session.post(PATH).status_code == 202
    eventually(lambda: status(live) == "installed", "the installation")


@pytest.mark.proves("local-models.runtime.install-inference-queued")
def test_while_an_inference_is_queued(live: LiveApp) -> None:
    with live.holding(KIND, concurrency=0):
        Jobs(live, KIND).new()
        refused(live)


@pytest.mark.proves("local-models.runtime.inference-during-install")
def test_an_inference_during_an_installation(held: HoldingIndex, live: LiveApp) -> None:
    assert live.session.post(PATH).status_code == 202
    assert held.asked.wait(30)
    job = Jobs(live, KIND).completed()
    assert job["status"] == "completed"
    assert status(live) == "installing"
    assert live.call(live.services.runtime.interpreter()) is None
    held.released.set()
    eventually(lambda: status(live) == "installed", "the installation")
