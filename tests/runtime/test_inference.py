"""Installations and inference keep out of each other's way."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app_client import RunningApp, running_app
from tests.cuda_installer.packages import HoldingIndex
from tests.protocol.jobs import Jobs
from tests.protocol.live import LiveApp, error_of, eventually
from tests.retrieval.models.real_model import OWN, lay
from tests.runtime.conftest import PATH, finished, settled

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


@pytest.mark.proves("local-models.runtime.install-model-in-use")
async def test_while_an_embedding_model_answers(tmp_path: Path) -> None:
    lay(tmp_path / "models" / "mini", embedding=OWN)
    async with running_app(tmp_path, open_vault=False, models_dirs=(tmp_path / "models",)) as app:
        await settled(app)
        body = {"texts": ["I heard a beep."]}
        asked = asyncio.create_task(app.http.post("/api/models/embeddings", json=body))
        async with asyncio.timeout(30):
            # A model that is at work has no event.
            while not await in_use(app):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        answer = await app.http.post(PATH)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "MODEL_IN_USE")
        assert not (app.data_dir / "runtime").exists()
        assert (await asked).status_code == 200
        assert (await app.http.post(PATH)).status_code == 202
        assert (await finished(app))["status"] == "installed"


async def in_use(app: RunningApp) -> bool:
    items = (await app.http.get("/api/local-models", params={"limit": 200})).json()["items"]
    return any(item["in_use"] for item in items)


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
