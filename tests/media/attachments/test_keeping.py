"""What belongs to which vault, what is kept, and what is cleaned up."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from host_bridge.launcher import Sidecar
from sidecar.kernel.clock import utc_in
from sidecar.media.transcription.profiles import DEFAULT_RETENTION_DAYS, SETTINGS_FILE
from sidecar.media.whisper.client import SPEECH_WORKER
from tests.app_client import RunningApp, running_app
from tests.media.attachments.test_uploads import recording_of_size
from tests.media.client import ATTACHMENTS, TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import JFK, RATE, TINY_PNG, encoded, samples_of

MEBIBYTE = 1024 * 1024


@pytest.mark.proves("media.attachments.vault-bound", "media.transcriptions.attachment-not-found")
async def test_another_vault_has_attachments_of_its_own(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with running_app(tmp_path, models_dirs=()) as app:
        media = MediaClient(app)
        job = await media.transcribed(JFK)
        path = f"{ATTACHMENTS}/{job['attachment_id']}"
        key = "one-key-two-vaults"
        first = (await media.send("a.png", TINY_PNG, key=key)).json()
        await _open(app, other)
        for answer in (
            await app.http.get(path),
            await app.http.get(f"{path}/content"),
            await app.http.delete(path),
        ):
            assert (answer.status_code, code_of(answer)) == (404, "ATTACHMENT_NOT_FOUND")
        answer = await app.http.post(TRANSCRIPTIONS, json={"attachment_id": job["attachment_id"]})
        assert (answer.status_code, code_of(answer)) == (404, "ATTACHMENT_NOT_FOUND")
        assert (await app.http.get(f"{TRANSCRIPTIONS}/{job['job_id']}")).status_code == 404
        assert (await app.http.get(TRANSCRIPTIONS)).json()["items"] == []
        assert await media.count() == 0
        second = (await media.send("a.png", TINY_PNG, key=key)).json()
        assert second["attachment_id"] != first["attachment_id"]
        assert app.vault is not None
        await _open(app, app.vault)
        assert (await app.http.get(path)).status_code == 200
        assert (await app.http.get(TRANSCRIPTIONS)).json()["page"]["total"] == 1


async def _open(app: RunningApp, vault: Path) -> None:
    answer = await app.host.post("/host/vault", json={"path": str(vault)})
    assert answer.status_code == 200, answer.text


async def test_without_a_vault_nothing_can_be_uploaded(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        media = MediaClient(app)
        answer = await media.send("a.png", TINY_PNG)
        assert (answer.status_code, code_of(answer)) == (409, "VAULT_NOT_OPEN")
        assert media.kept_files() == set()


@pytest.mark.proves(
    "media.attachments.cleanup",
    "media.attachments.cleanup-keeps-references",
    "media.idempotency.expired",
)
@pytest.mark.parametrize("days", [DEFAULT_RETENTION_DAYS, 30])
async def test_what_nobody_uses_is_removed_after_its_time(tmp_path: Path, days: int) -> None:
    if days != DEFAULT_RETENTION_DAYS:
        (tmp_path / "data").mkdir()
        settings = f'\ufeff{{"attachment_retention_days": {days}}}'
        (tmp_path / "data" / SETTINGS_FILE).write_text(settings, "utf-8")
    async with running_app(tmp_path, models_dirs=()) as app:
        media = MediaClient(app)
        used = await media.transcribed(encoded(samples_of(JFK)[:RATE], "flac"))
        old = (await media.send("old.png", TINY_PNG, key="an-old-attachment")).json()
        young = await media.upload("young.png", TINY_PNG)
        shown = await media.upload("shown.png", TINY_PNG)
        picture = f"![plan](/api/media/attachments/{shown['attachment_id']}/content)"
        note = await app.http.post("/api/notes", json={"title": "Plan", "content": picture})
        assert note.status_code == 201, note.text
        day = 86_400
        for attachment_id, age in (
            (used["attachment_id"], 100 * day),
            (old["attachment_id"], days * day + 60),
            (young["attachment_id"], days * day - 60),
            (shown["attachment_id"], 100 * day),
        ):
            await app.services.database.write(
                lambda tx, age=age, attachment_id=attachment_id: tx.execute(  # type: ignore[misc]
                    "UPDATE attachments SET created_at = ? WHERE attachment_id = ?",
                    (utc_in(-age), attachment_id),
                )
            )
        assert await app.services.media.attachments.clean_up() == 1
        left = {item["attachment_id"] for item in (await app.http.get(ATTACHMENTS)).json()["items"]}
        assert left == {made["attachment_id"] for made in (used, young, shown)}
        assert not any(name.startswith(old["attachment_id"]) for name in media.kept_files())
        refused = await app.http.delete(f"{ATTACHMENTS}/{shown['attachment_id']}")
        assert code_of(refused) == "ATTACHMENT_IN_USE"
        assert refused.json()["error"]["details"]["references"] == [
            {"type": "note", "id": note.json()["note_id"]}
        ]
        answer = await media.send("old.png", TINY_PNG, key="an-old-attachment")
        assert (answer.status_code, code_of(answer)) == (409, "IDEMPOTENCY_EXPIRED")


@pytest.mark.asyncio(loop_scope="package")
@pytest.mark.proves("media.transcriptions.metadata-not-to-model")
async def test_metadata_reaches_no_worker(
    media: MediaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = media.app.services.workers.add(SPEECH_WORKER)
    asked: list[object] = []
    real = worker.request

    def request(method: str, params: dict[str, object]) -> object:
        asked.append(params)
        return real(method, params)

    monkeypatch.setattr(worker, "request", request)
    content = encoded(samples_of(JFK)[: 2 * RATE], "flac")
    job = await media.transcribed(content, language="en", metadata={"secret": "canary-7391"})
    assert job["metadata"] == {"secret": "canary-7391"}
    assert len(asked) == 1
    assert "canary-7391" not in repr(asked)


@pytest.mark.proves("media.attachments.upload-streams")
def test_large_uploads_at_once_need_little_memory(sidecar: Sidecar) -> None:
    content = recording_of_size(25 * MEBIBYTE)
    sidecar.upload(ATTACHMENTS, JFK).check(201)
    server = psutil.Process(sidecar.pid)
    before = server.memory_info().rss
    peak, over = [before], threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            peak[0] = max(peak[0], server.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(5) as pool:
        answers = list(
            pool.map(lambda _: sidecar.upload(ATTACHMENTS, content, filename="a.wav"), range(5))
        )
    over.set()
    watcher.join()
    assert [answer.status for answer in answers] == [201] * 5
    assert peak[0] - before < 25 * MEBIBYTE
