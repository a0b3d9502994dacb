"""How an export runs, ends, and what it leaves."""

import asyncio
import dataclasses
import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.clock import utc_in
from tests.app_client import RunningApp, running_app
from tests.export import client
from tests.export.client import markdown_request
from tests.export.reading import read_html

# Takes a second or two to be read, so that there is something to cancel.
LARGE = "#### heading *with* words\n\n" * 7_000
CANARY = "canary-7f3a"


def artefacts(app: RunningApp) -> list[Path]:
    """Return the files that exports have left, finished or not."""
    folders = (app.data_dir / "exports", app.data_dir / "tmp")
    return [path for folder in folders for path in folder.iterdir()]


async def cancel(app: RunningApp, job_id: str) -> tuple[int, Any]:
    response = await app.http.post(f"/api/exports/{job_id}/cancel")
    return response.status_code, response.json()


@pytest.mark.proves("export.job.transitions")
async def test_a_job_takes_the_states_in_order(app: RunningApp) -> None:
    job_id = await client.create(app, markdown_request("text"))
    await client.ended(app, job_id)
    events, _ = await app.services.events.page(job_id, 0, 100)
    names = [event.event for event in events]
    assert names[0] == "Queued"
    assert names[-1] == "Completed"
    assert set(names[1:-1]) == {"Progress"}
    phases = [event.data["phase"] for event in events[1:-1]]
    assert list(dict.fromkeys(phases)) == ["parsing", "rendering", "writing"]
    assert [event.terminal for event in events].count(True) == 1


@pytest.mark.proves("export.cancel.accepted", "export.cancel.running", "export.cancel.terminal")
async def test_a_running_export_is_cancelled(app: RunningApp) -> None:
    job_id = await client.create(app, markdown_request(LARGE))
    await client.works(app, job_id)
    status, body = await cancel(app, job_id)
    assert status == 202
    assert body["status"] == "accepted"
    assert body["message"]
    job = await client.ended(app, job_id)
    assert job["status"] == "cancelled"
    assert job["error_code"] == "EXPORT_CANCELLED"
    assert job["file"] is None
    assert job["completed_at"]
    assert artefacts(app) == []

    status, body = await cancel(app, job_id)
    assert (status, body["error"]["code"]) == (409, "JOB_ALREADY_FINISHED")
    assert await client.read(app, job_id) == job


@pytest.mark.proves(
    "export.cancel.queued", "export.queue.others-unblocked", "export.file.not-ready"
)
async def test_a_waiting_export_is_cancelled_while_others_render(app: RunningApp) -> None:
    running = [await client.create(app, markdown_request(LARGE)) for _ in range(2)]
    waiting = await client.create(app, markdown_request("text"))
    for job_id in running:
        await client.works(app, job_id)
    assert (await client.read(app, waiting))["status"] == "queued"
    assert (await cancel(app, waiting))[0] == 202
    job = await client.ended(app, waiting)
    assert (job["status"], job["started_at"], job["file"]) == ("cancelled", None, None)
    for job_id in (running[0], waiting):
        response = await app.http.get(f"/api/exports/{job_id}/file")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "EXPORT_JOB_NOT_FOUND"
    # All of that was answered while the others were at work.
    assert (await client.read(app, running[0]))["status"] == "running"
    for job_id in running:
        await cancel(app, job_id)
        assert (await client.ended(app, job_id))["status"] == "cancelled"


async def test_a_finished_export_cannot_be_cancelled(app: RunningApp) -> None:
    job, content = await client.export(app, markdown_request("text"))
    status, body = await cancel(app, job["job_id"])
    assert (status, body["error"]["code"]) == (409, "JOB_ALREADY_FINISHED")
    assert await client.read(app, job["job_id"]) == job
    response = await app.http.get(f"/api/exports/{job['job_id']}/file")
    assert response.content == content


@pytest.mark.proves("export.cancel.race")
async def test_cancel_and_completion_meet(app: RunningApp) -> None:
    async def race(number: int) -> str:
        job_id = await client.create(
            app, markdown_request(f"# {number}\n\n" + "text\n\n" * 200 * number)
        )
        for _ in range(number):
            await client.read(app, job_id)
        status, _ = await cancel(app, job_id)
        job = await client.ended(app, job_id)
        response = await app.http.get(f"/api/exports/{job_id}/file")
        if job["status"] == "completed":
            assert (status, response.status_code) in ((409, 200), (202, 200))
            assert len(response.content) == job["file"]["size"]
        else:
            assert (job["status"], job["file"], response.status_code) == ("cancelled", None, 404)
        return job_id

    ids = [await race(number) for number in range(12)]
    for job_id in ids:
        events, _ = await app.services.events.page(job_id, 0, 100)
        assert [event.terminal for event in events].count(True) == 1
    kept = {path.stem for path in artefacts(app)}
    completed = {job_id for job_id in ids if (await client.read(app, job_id))["file"]}
    assert kept == completed


@pytest.mark.proves("export.source.markdown-not-kept", "export.source.markdown-not-traced")
async def test_the_text_is_forgotten(app: RunningApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    text = f"# {CANARY}\n\n$\\{CANARY}$ ![{CANARY}]({CANARY}.png) [{CANARY}]({CANARY}.md)\n\n<{CANARY}>"
    job, content = await client.export(app, markdown_request(text))
    assert CANARY.encode() in content
    assert job["file"]["file_name"] == "export.html"
    assert job["warnings"]
    cancelled = await client.create(app, markdown_request(f"{CANARY}\n\n{LARGE}"))
    await client.works(app, cancelled)
    await cancel(app, cancelled)
    jobs = [job, await client.ended(app, cancelled)]

    def everything(conn: Any) -> str:
        tables = conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = [
            tuple(row)
            for (name,) in (tuple(table) for table in tables)
            for row in conn.execute(f'SELECT * FROM "{name}"').fetchall()
        ]
        return repr(rows)

    assert CANARY not in await app.services.database.read(everything)
    assert CANARY not in repr(jobs)
    assert CANARY not in (await app.http.get("/api/exports")).text
    assert CANARY not in caplog.text
    assert CANARY not in repr([record.__dict__ for record in caplog.records])


@pytest.mark.proves("export.errors.render-failed", "export.job.failed-safe")
async def test_a_failing_renderer_fails_its_own_job_alone(
    app: RunningApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running = [await client.create(app, markdown_request(LARGE)) for _ in range(2)]
    bad = await client.create(app, markdown_request(CANARY, title="bad"))
    good = await client.create(app, markdown_request("x", title="good"))
    for job_id in running:
        await client.works(app, job_id)
    # Where the file is to be written lies a folder.
    (app.data_dir / "tmp" / f"{bad}.html").mkdir()
    for job_id in running:
        await cancel(app, job_id)
    job = await client.ended(app, bad)
    assert (job["status"], job["error_code"], job["file"]) == (
        "failed",
        "EXPORT_RENDER_FAILED",
        None,
    )
    assert job["completed_at"]
    assert job["error"]
    assert CANARY not in repr(job) + caplog.text
    assert str(app.data_dir) not in repr(job)
    assert "Error" not in repr(job)
    assert (await client.ended(app, good))["status"] == "completed"
    response = await app.http.get(f"/api/exports/{bad}/file")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "EXPORT_JOB_NOT_FOUND")


@pytest.mark.proves("export.errors.render-failed")
@pytest.mark.skipif(os.name != "posix", reason="the worker is ended with SIGKILL")
async def test_a_worker_that_dies_fails_its_own_job_alone(app: RunningApp) -> None:
    dying = await client.create(app, markdown_request(LARGE))
    await client.works(app, dying)
    (child,) = app.services.workers.children()
    assert child.kind.startswith("worker:export")
    os.kill(child.pid, signal.SIGKILL)
    job = await client.ended(app, dying)
    assert (job["status"], job["error_code"]) == ("failed", "EXPORT_RENDER_FAILED")
    assert artefacts(app) == []
    assert (await client.ended(app, await client.create(app, markdown_request("x"))))["file"]


async def test_the_worker_that_loads_while_a_request_is_checked_makes_the_document(
    app: RunningApp,
) -> None:
    await client.export(app, markdown_request("words"))
    (child,) = app.services.workers.children()
    # It is there already before a document is wanted of it, and stays the only one.
    app.services.exports._rendering.prepare(app.services.exports._tools("docx"))
    await client.export(app, markdown_request("words") | {"format": "docx"})
    assert app.services.workers.children() == [child]


async def test_a_file_that_would_be_too_large_is_not_made(app: RunningApp) -> None:
    service = app.services.exports
    assert service._settings.output_bytes == 64 * 1024 * 1024
    service._settings = dataclasses.replace(service._settings, output_bytes=20_000)
    job = await client.ended(app, await client.create(app, markdown_request("words " * 5_000)))
    assert (job["status"], job["error_code"]) == ("failed", "EXPORT_OUTPUT_TOO_LARGE")
    assert artefacts(app) == []
    assert (await client.ended(app, await client.create(app, markdown_request("x"))))["file"]


@pytest.mark.proves("export.file.expired", "export.file.expired-cleanup")
async def test_a_file_expires(app: RunningApp) -> None:
    old, _ = await client.export(app, markdown_request("old"))
    new, content = await client.export(app, markdown_request("new"))
    day_ago = utc_in(-24 * 3600)
    await app.services.database.write(
        lambda tx: tx.execute(
            "UPDATE jobs SET completed_at = ? WHERE job_id = ?", (day_ago, old["job_id"])
        )
    )
    response = await app.http.get(f"/api/exports/{old['job_id']}/file")
    assert (response.status_code, response.json()["error"]["code"]) == (410, "EXPORT_FILE_EXPIRED")
    foreign = app.data_dir / "exports" / "readme.txt"
    foreign.write_text("not ours", encoding="utf-8")
    orphan = app.data_dir / "exports" / "export_0abc.html"
    orphan.write_text("of no job", encoding="utf-8")

    assert await app.services.exports.sweep() == 2
    assert {path.name for path in artefacts(app)} == {f"{new['job_id']}.html", "readme.txt"}
    job = await client.read(app, old["job_id"])
    assert job["status"] == "completed"
    assert job["file"] | {"expires_at": None} == old["file"] | {"expires_at": None}
    response = await app.http.get(f"/api/exports/{old['job_id']}/file")
    assert response.status_code == 410
    response = await app.http.get(f"/api/exports/{new['job_id']}/file")
    assert response.content == content


async def test_a_file_that_somebody_removed_counts_as_expired(app: RunningApp) -> None:
    job, _ = await client.export(app, markdown_request("x"))
    (app.data_dir / "exports" / f"{job['job_id']}.html").unlink()
    response = await app.http.get(f"/api/exports/{job['job_id']}/file")
    assert (response.status_code, response.json()["error"]["code"]) == (410, "EXPORT_FILE_EXPIRED")


@pytest.mark.proves("export.job.persisted", "export.job.restart-interrupted")
async def test_exports_outlive_a_restart(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False) as app:
        done, content = await client.export(app, markdown_request("# Done", title="Kept"))
        interrupted = [
            await client.create(app, markdown_request(f"# {n}\n\n{LARGE}")) for n in range(3)
        ]
        await client.works(app, interrupted[0])
    async with running_app(tmp_path, open_vault=False) as app:
        assert await client.read(app, done["job_id"]) == done
        assert (await app.http.get("/api/exports")).json()["page"]["total"] == 4
        response = await app.http.get(f"/api/exports/{done['job_id']}/file")
        assert response.content == content
        for number, job_id in enumerate(interrupted):
            job = await client.ended(app, job_id)
            assert job["status"] == "completed"
            response = await app.http.get(f"/api/exports/{job_id}/file")
            assert read_html(response.content).all("h1")[0].text == str(number)


async def test_expired_files_are_removed_at_start(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False) as app:
        job, _ = await client.export(app, markdown_request("x"))
        await app.services.database.write(
            lambda tx: tx.execute("UPDATE jobs SET completed_at = ?", (utc_in(-25 * 3600),))
        )
        assert len(artefacts(app)) == 1
    async with running_app(tmp_path, open_vault=False) as app:

        async def removed() -> None:
            while artefacts(app):  # noqa: ASYNC110 - a folder tells nobody of its changes
                await asyncio.sleep(0.02)

        await asyncio.wait_for(removed(), 20)
        assert (await client.read(app, job["job_id"]))["status"] == "completed"
