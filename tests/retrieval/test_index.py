"""The state of the index, and building it anew."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.retrieval import store
from sidecar.retrieval.service import RetrievalService
from tests.app_client import RunningApp, running_app
from tests.vault.conftest import Vault, eventually


async def status(app: RunningApp) -> dict[str, Any]:
    """Return the state of the index."""
    answer = await app.http.get("/api/index/status")
    assert answer.status_code == 200
    return answer.json()


async def rebuild(app: RunningApp, scope: str) -> str:
    """Start a rebuild and return its job."""
    answer = await app.http.post("/api/index/rebuild", json={"scope": scope})
    assert answer.status_code == 202, answer.text
    return answer.json()["job_id"]


async def until_at_rest(app: RunningApp) -> dict[str, Any]:
    """Wait until nothing is going on and return the state."""

    async def is_at_rest() -> bool:
        return (await status(app))["status"] != "running"

    await eventually(is_at_rest)
    return await status(app)


@pytest.mark.proves("retrieval.index-status.fields", "retrieval.index-status.last-completed")
async def test_fields(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False) as app:
        assert await status(app) == {
            "status": "idle",
            "pending_jobs": 0,
            "active_job_id": None,
            "embedding": None,
            "vector_index": None,
            "last_completed_at": None,
            "error_message": None,
            "progress": None,
        }
    async with running_app(tmp_path) as app:

        async def is_completed() -> bool:
            return (await status(app))["last_completed_at"] is not None

        await eventually(is_completed)
        first = (await status(app))["last_completed_at"]
        await rebuild(app, "fts")
        last = (await until_at_rest(app))["last_completed_at"]
        assert last > first
    async with running_app(tmp_path, open_vault=False) as app:
        assert (await status(app))["last_completed_at"] >= last


@pytest.mark.proves(
    "retrieval.rebuild.status", "retrieval.rebuild.scopes", "retrieval.rebuild.no-model"
)
async def test_requests(vault: Vault) -> None:
    answer = await vault.app.http.post("/api/index/rebuild", json={"scope": "fts"})
    assert answer.status_code == 202
    body = answer.json()
    assert body.keys() == {"status", "message", "job_id"}
    assert body["status"] == "accepted"
    for wrong in ({}, {"scope": "some"}, {"scope": None}):
        answer = await vault.app.http.post("/api/index/rebuild", json=wrong)
        assert answer.status_code == 422
    await until_at_rest(vault.app)
    answer = await vault.app.http.post("/api/index/rebuild", json={"scope": "vectors"})
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "EMBEDDING_MODEL_UNAVAILABLE"
    assert (await status(vault.app))["pending_jobs"] == 0


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Holds every rebuild at its beginning until the event is set."""
    gate = asyncio.Event()
    from sidecar.vault.service import VaultService

    real = VaultService.index_again

    async def waiting(self: VaultService, report: Callable[[int, int], Awaitable[None]]) -> None:
        await gate.wait()
        await real(self, report)

    monkeypatch.setattr(VaultService, "index_again", waiting)
    return gate


@pytest.mark.proves("retrieval.index-status.states", "retrieval.rebuild.concurrent")
async def test_one_at_a_time(hold: asyncio.Event, vault: Vault) -> None:
    await vault.create("Note", "word")
    await vault.scanned()
    first = await rebuild(vault.app, "fts")

    async def is_running() -> bool:
        state = await status(vault.app)
        return state["active_job_id"] == first and state["progress"] is not None

    await eventually(is_running)
    assert await rebuild(vault.app, "fts") == first
    waiting = (await status(vault.app))["pending_jobs"]
    second = await rebuild(vault.app, "all")
    assert second != first
    assert await rebuild(vault.app, "all") == second
    state = await status(vault.app)
    assert (state["status"], state["active_job_id"]) == ("running", first)
    assert state["pending_jobs"] == waiting + 1
    assert state["progress"]["phase"] == "scanning"
    # The old index serves, and takes what is new.
    await vault.create("Meanwhile", "fresh")
    assert len(await vault.found("word")) == len(await vault.found("fresh")) == 1
    hold.set()
    state = await until_at_rest(vault.app)
    assert (state["status"], state["pending_jobs"], state["active_job_id"]) == ("idle", 0, None)
    assert len(await vault.found("word")) == len(await vault.found("fresh")) == 1


@pytest.mark.proves("retrieval.rebuild.scopes")
async def test_a_damaged_index_is_mended(vault: Vault) -> None:
    for number in range(30):
        await vault.create(f"Note {number}", f"text {number} common\n\nsecond")
    database = vault.app.services.database

    def damage(tx: Any) -> None:
        state = store.text_state(tx)
        store.clear_text(tx, state.active)
        tx.execute("DELETE FROM search_blocks WHERE block_no % 2 = 0")

    await database.write(damage)
    assert await vault.found("common") == []
    await rebuild(vault.app, "fts")
    await until_at_rest(vault.app)
    assert len(await vault.found("common", limit=100)) == 30
    await vault.delete((await vault.found("common"))[0]["note_id"])
    assert len(await vault.found("common", limit=100)) == 29


@pytest.mark.proves("retrieval.rebuild.scopes")
async def test_what_changes_during_a_rebuild_is_not_lost(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Writes come between the steps of the rebuild, to blocks on both sides of where it is.
    monkeypatch.setattr("sidecar.retrieval.full_text.index.COPIED_AT_ONCE", 7)
    notes = [await vault.create(f"Note {n}", f"start{n}\n\ncommon") for n in range(40)]
    for turn in range(3):
        await rebuild(vault.app, "fts")
        for number, note in enumerate(notes[:20]):
            await vault.put(note["note_id"], f"turn{turn}x{number}z\n\ncommon")
        await until_at_rest(vault.app)
        for number in range(20):
            assert len(await vault.found(f"turn{turn}x{number}z")) == 1
            if turn:
                assert await vault.found(f"turn{turn - 1}x{number}z") == []
        assert len(await vault.found("common", limit=100)) == 40
    for note in notes:
        await vault.delete(note["note_id"])
    assert await vault.found("common") == []


@pytest.mark.proves("retrieval.rebuild.failure-keeps-old", "retrieval.index-status.error-message")
async def test_a_rebuild_that_fails(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    await vault.create("Note", "word")
    from sidecar.retrieval.full_text import index as text_index

    def fail(*_: object) -> int:
        raise ProjectError("DISK_SPACE_INSUFFICIENT")

    with monkeypatch.context() as patch:
        patch.setattr(text_index, "_copy", fail)
        await rebuild(vault.app, "fts")
        state = await until_at_rest(vault.app)
    assert state["status"] == "failed"
    assert state["error_message"].startswith("DISK_SPACE_INSUFFICIENT: ")
    assert (state["pending_jobs"], state["active_job_id"]) == (0, None)
    assert len(await vault.found("word")) == 1
    health = (await vault.app.http.get("/api/system/health")).json()
    assert health["subsystems"]["index"]["code"] == "DISK_SPACE_INSUFFICIENT"
    await rebuild(vault.app, "fts")
    state = await until_at_rest(vault.app)
    assert (state["status"], state["error_message"]) == ("idle", None)
    assert len(await vault.found("word")) == 1


async def test_a_new_way_of_writing_words_builds_the_index_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_app(tmp_path) as app:
        vault = Vault(app, tmp_path / "vault")
        await vault.create("Note", "word")

        def damage(tx: Any) -> None:
            store.clear_text(tx, store.text_state(tx).active)

        await app.services.database.write(damage)
    monkeypatch.setattr("sidecar.retrieval.rebuild.FORMAT", 2)
    monkeypatch.setattr("sidecar.retrieval.full_text.index.FORMAT", 2)
    async with running_app(tmp_path) as app:
        vault = Vault(app, tmp_path / "vault")

        async def is_mended() -> bool:
            return len(await vault.found("word")) == 1

        await eventually(is_mended)


async def test_a_vault_that_is_taken_in_early_is_indexed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = RetrievalService.start

    async def not_yet(_: RetrievalService) -> None:
        return

    monkeypatch.setattr(RetrievalService, "start", not_yet)
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/note.md").write_text("word", encoding="utf-8")
    async with running_app(tmp_path) as app:
        vault = Vault(app, tmp_path / "vault")
        await vault.scanned()
        await start(app.services.retrieval)
        await until_at_rest(app)
        assert len(await vault.found("word")) == 1
        # A rebuild would have filled the other index and let that serve.
        assert (await app.services.database.read(store.text_state)).active == "a"
