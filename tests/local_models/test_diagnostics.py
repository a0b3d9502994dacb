"""What is noted of local models' work, with the real recogniser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.database import Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.client import WorkerPool
from sidecar.local_models.service import Attempt
from sidecar.retrieval.models import client as model_worker
from sidecar.retrieval.models.local import LocalModelSource
from tests.app_client import MODELS_DIR, RunningApp, running_app
from tests.media.client import MediaClient
from tests.media.samples import JFK, RATE, encoded, samples_of
from tests.retrieval.models.real_model import OWN, lay

PATH = "/api/local-models/diagnostics"
FIELDS = {
    "id",
    "created_at",
    "kind",
    "purpose",
    "model_id",
    "requested_device",
    "actual_device",
    "status",
    "load_ms",
    "duration_ms",
    "error_code",
    "fallback_reason",
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    async with running_app(tmp_path, models_dirs=()) as running:
        yield running


async def records(app: RunningApp) -> list[dict[str, Any]]:
    answer = await app.http.get(PATH)
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    assert body["scope"] == "application_last_200_attempts"
    items: list[dict[str, Any]] = body["items"]
    assert all(set(item) == FIELDS for item in items)
    return items


async def add(app: RunningApp, *attempts: Attempt) -> None:
    def write(tx: Transaction) -> None:
        for attempt in attempts:
            app.services.local_models.attempts.add(tx, attempt)

    await app.services.database.write(write)


@pytest.mark.proves("local-models.diagnostics.empty", "local-models.diagnostics.get")
async def test_before_the_first_attempt(app: RunningApp) -> None:
    assert await records(app) == []


@pytest.mark.proves(
    "local-models.diagnostics.last-200",
    "local-models.diagnostics.order",
    "local-models.diagnostics.fields",
    "local-models.diagnostics.persisted",
)
async def test_the_newest_200_are_kept_over_a_restart(tmp_path: Path) -> None:
    async with running_app(tmp_path, models_dirs=()) as first:
        await add(first, *(Attempt("call", "embedding", f"{n}") for n in range(201)))
        fallback = Attempt("fallback", "transcription", "completed", fallback_reason="cuda_failed")
        await add(first, fallback)
    async with running_app(tmp_path, models_dirs=()) as second:
        items = await records(second)
    assert len(items) == 200
    assert (items[0]["kind"], items[0]["fallback_reason"]) == ("fallback", "cuda_failed")
    assert [item["status"] for item in items[1:]] == [f"{n}" for n in range(200, 1, -1)]
    assert len({item["id"] for item in items}) == 200


@pytest.mark.proves(
    "local-models.diagnostics.no-invented-device",
    "local-models.diagnostics.failures-recorded",
    "local-models.use.not-installed",
    "local-models.use.no-silent-download",
)
async def test_an_attempt_without_a_model(app: RunningApp) -> None:
    client = MediaClient(app)
    attachment = await client.upload("secret name.flac", encoded(samples_of(JFK)[:RATE], "flac"))
    job = await client.start(attachment["attachment_id"])
    ended = await client.finished(job["job_id"])
    assert (ended["status"], ended["error_code"]) == ("failed", "LOCAL_MODEL_NOT_INSTALLED")
    (record,) = await records(app)
    assert (record["kind"], record["purpose"], record["status"]) == (
        "call",
        "transcription",
        "failed",
    )
    assert record["error_code"] == "LOCAL_MODEL_NOT_INSTALLED"
    assert record["actual_device"] is record["model_id"] is record["load_ms"] is None
    assert record["duration_ms"] is None
    items = (await app.http.get("/api/local-models")).json()["items"]
    assert {item["download"] for item in items} == {None}


@pytest.mark.proves(
    "local-models.diagnostics.actual-device",
    "local-models.diagnostics.private",
    "local-models.delete.in-use",
    "local-models.import.verified",
)
async def test_real_work_with_an_imported_model(app: RunningApp) -> None:
    """The real model is imported, used by one job and awaited by another, and then removed."""
    client = MediaClient(app)
    base = MODELS_DIR / "whisper-base"
    package = await app.host.post("/host/packages", json={"path": str(base)})
    body = {"package_id": package.json()["package_id"]}
    answer = await app.http.post("/api/local-models/whisper-base/import", json=body)
    assert answer.status_code == 202
    end = asyncio.timeout(60)
    async with end, aclosing(app.services.events.subscribe("whisper-base")) as told:
        async for _ in told:
            pass
    assert await status(app) == "installed"

    speech = encoded(samples_of(JFK), "flac")
    attachment = await client.upload("secret name.flac", speech)
    first = await client.start(attachment["attachment_id"])
    second = await client.start(attachment["attachment_id"])
    removal = await app.http.delete("/api/local-models/whisper-base")
    assert removal.json()["error"]["code"] == "MODEL_IN_USE"
    assert (await model(app))["in_use"] is True
    await client.until(first["job_id"], "TranscriptionStarted")
    await app.http.post(f"/api/media/transcriptions/{second['job_id']}/cancel")
    assert (await client.finished(first["job_id"]))["status"] == "completed"
    await client.finished(second["job_id"])

    completed, cancelled = await records(app)
    assert (completed["status"], completed["model_id"]) == ("completed", "whisper-base")
    assert (completed["requested_device"], completed["actual_device"]) == ("auto", "cpu")
    assert completed["load_ms"] > 0 and completed["duration_ms"] > 0
    assert (cancelled["status"], cancelled["error_code"]) == (
        "cancelled",
        "TRANSCRIPTION_CANCELLED",
    )
    assert cancelled["actual_device"] is None
    shown = (await app.http.get(PATH)).text
    assert "secret name" not in shown and "country" not in shown and str(app.data_dir) not in shown
    assert (await model(app))["in_use"] is False
    assert (await app.http.delete("/api/local-models/whisper-base")).status_code == 204
    assert await status(app) == "not_installed"
    assert (base / "model.bin").is_file()


async def model(app: RunningApp) -> dict[str, Any]:
    items = (await app.http.get("/api/local-models")).json()["items"]
    found: dict[str, Any] = next(item for item in items if item["model_id"] == "whisper-base")
    return found


async def status(app: RunningApp) -> str:
    return str((await model(app))["status"])


@pytest.mark.proves(
    "local-models.diagnostics.calls-and-fallbacks", "local-models.diagnostics.failures-recorded"
)
async def test_calls_of_an_embedding_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query is a call; passages that are embedded one batch after the other are one."""
    monkeypatch.setattr(model_worker, "PAUSE_SECONDS", 0.2)
    notes: list[Attempt] = []
    workers = WorkerPool()
    folder = lay(tmp_path / "mini", embedding=OWN)
    embedder = await LocalModelSource((folder,), workers, note=notes.append).local()
    assert embedder is not None
    await embedder.embed_queries(["a question"])
    for _ in range(3):
        await embedder.embed_passages(["a secret passage"] * 4)
    assert [(note.purpose, note.status) for note in notes] == [("embedding", "completed")]
    async with asyncio.timeout(10):
        while len(notes) < 2:  # noqa: ASYNC110 - a pause has no event
            await asyncio.sleep(0.02)
    query, passages = notes
    assert query.load_ms is not None and query.load_ms > 0
    assert (passages.load_ms, passages.actual_device) == (None, "cpu")
    assert passages.duration_ms is not None and passages.duration_ms > 0
    assert {note.model_id for note in notes} == {"MiniLM"}
    (folder / "model.onnx").write_bytes(b"no model")
    await workers.close()
    broken = WorkerPool()
    damaged = await LocalModelSource((folder,), broken, note=notes.append).local()
    assert damaged is not None
    with pytest.raises(ProjectError):
        await damaged.embed_passages(["a passage"])
    await broken.close()
    assert (notes[-1].status, notes[-1].actual_device) == ("failed", None)
    assert notes[-1].error_code == "EMBEDDING_MODEL_UNAVAILABLE"


async def test_embeddings_are_noted_in_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_worker, "PAUSE_SECONDS", 0.1)
    lay(tmp_path / "models" / "mini", embedding=OWN)
    async with running_app(tmp_path, models_dirs=(tmp_path / "models",)) as app:
        body = {"texts": ["I heard a beep."]}
        answer = await app.http.post("/api/models/embeddings", json=body)
        assert answer.status_code == 200, answer.text
        async with asyncio.timeout(10):
            while not (found := await records(app)):  # noqa: ASYNC110 - it is noted soon after
                await asyncio.sleep(0.02)
    (record,) = found
    assert (record["purpose"], record["model_id"]) == ("embedding", "MiniLM")
    assert (record["status"], record["actual_device"]) == ("completed", "cpu")
    assert record["load_ms"] > 0
