"""Notes of the vault become documents."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import RunningApp, running_app
from tests.export import client
from tests.export.client import markdown_request
from tests.export.pictures.samples import png
from tests.export.reading import read_html
from tests.export.test_jobs import LARGE


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    async with running_app(tmp_path) as running:
        yield running


async def new_note(app: RunningApp, title: str, content: str, **more: Any) -> str:
    """Create a note and return its id."""
    body = {"title": title, "content": content, **more}
    response = await app.http.post("/api/notes", json=body)
    assert response.status_code == 201, response.text
    note_id: str = response.json()["note_id"]
    return note_id


def note_request(note_id: str, **more: Any) -> dict[str, Any]:
    return {"source": {"type": "note", "note_id": note_id}, "format": "html", **more}


@pytest.mark.proves("export.source.note", "export.title.default", "export.file.name-from-title")
async def test_a_note_is_exported_as_it_is_now(app: RunningApp) -> None:
    note_id = await new_note(app, "操作系统复习", "## 进程\n\nfirst text")
    changed = await app.http.patch(
        f"/api/notes/{note_id}", json={"content": "## 线程\n\nsecond text"}
    )
    assert changed.status_code == 200, changed.text
    job, content = await client.export(app, note_request(note_id))
    document = read_html(content)
    assert document.one("h1").text == "操作系统复习"
    assert document.one("h2").text == "线程"
    assert "second text" in document.one("main").text
    assert "first text" not in document.text
    assert job["file"]["file_name"] == "操作系统复习.html"

    job, content = await client.export(app, note_request(note_id, title="Other: title"))
    assert read_html(content).one("h1").text == "Other: title"
    assert job["file"]["file_name"] == "Other_ title.html"

    job, content = await client.export(app, markdown_request("text\n\n## A *heading*"))
    document = read_html(content)
    assert (document.one("title").text, document.one("h1").text) == ("A heading", "A heading")
    assert job["file"]["file_name"] == "export.html"


@pytest.mark.proves("export.source.note-not-found")
async def test_an_unknown_note(app: RunningApp) -> None:
    status, code, _ = await client.error_of(app, note_request("note_unknown"))
    assert (status, code) == (404, "EXPORT_SOURCE_NOT_FOUND")


@pytest.mark.proves("export.source.note-gone-before-run")
async def test_a_note_that_is_gone_when_its_turn_comes(app: RunningApp) -> None:
    note_id = await new_note(app, "Short life", "text")
    others = [await client.create(app, markdown_request(LARGE)) for _ in range(2)]
    for job_id in others:
        await client.works(app, job_id)
    job_id = await client.create(app, note_request(note_id))
    assert (await app.http.delete(f"/api/notes/{note_id}")).status_code in (200, 204)
    assert (await client.read(app, job_id))["status"] == "queued"
    for other in others:
        await app.http.post(f"/api/exports/{other}/cancel")
    job = await client.ended(app, job_id)
    assert (job["status"], job["error_code"]) == ("failed", "EXPORT_SOURCE_NOT_FOUND")


async def test_metadata_of_a_note(app: RunningApp) -> None:
    note_id = await new_note(app, "Tagged", "text", tags=["physics", "高数"])
    for wanted in (True, False):
        options = {"include_metadata": wanted}
        _, content = await client.export(app, note_request(note_id, options=options))
        words = read_html(content).one("main").text
        assert ("physics, 高数" in words) is wanted
        # Front matter, where the tags are kept, isn't text of the document.
        assert words.count("physics") == int(wanted)


@pytest.mark.proves("export.images.note-base")
async def test_pictures_are_looked_for_beside_the_note(app: RunningApp) -> None:
    assert app.vault is not None
    (app.vault / "课程").mkdir()
    (app.vault / "课程" / "a.png").write_bytes(png(7, 7))
    (app.vault / "a.png").write_bytes(png(5, 5))
    note_id = await new_note(
        app, "Pictures", "![near](a.png) ![far](../a.png) ![no](b.png)", folder="课程"
    )
    job, content = await client.export(app, note_request(note_id))
    sources = [image.attributes["src"] for image in read_html(content).all("img")]
    expected = [base64.b64encode(png(size, size)).decode() for size in (7, 5)]
    assert sources == [f"data:image/png;base64,{data}" for data in expected]
    assert len(job["warnings"]) == 1
    assert "b.png" in job["warnings"][0]


async def test_pictures_of_an_unsaved_text_are_looked_for_from_its_path(app: RunningApp) -> None:
    assert app.vault is not None
    (app.vault / "sub").mkdir()
    (app.vault / "sub" / "a.png").write_bytes(png())
    (app.vault / "sub" / "text.md").write_text("CONTENT OF THE FILE", encoding="utf-8")
    body = markdown_request("![a](a.png)")
    body["source"]["file_path"] = "sub/text.md"
    _, content = await client.export(app, body)
    assert len(read_html(content).all("img")) == 1
    assert b"CONTENT OF THE FILE" not in content


async def test_without_a_vault_notes_cannot_be_exported(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False) as app:
        status, code, _ = await client.error_of(app, note_request("note_1"))
        assert (status, code) == (409, "VAULT_NOT_OPEN")


async def test_an_interrupted_export_of_a_note_runs_after_a_restart(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        note_id = await new_note(app, "Interrupted", LARGE)
        job_id = await client.create(app, note_request(note_id))
        await client.works(app, job_id)
    async with running_app(tmp_path, open_vault=False) as app:
        assert (await client.ended(app, job_id))["status"] == "completed"


@pytest.mark.proves("export.queue.others-unblocked")
async def test_searches_are_answered_while_hundreds_of_pages_are_made(app: RunningApp) -> None:
    await new_note(app, "调度", "进程调度与死锁")

    async def search() -> list[Any]:
        response = await app.http.post("/api/search", json={"query": "死锁", "mode": "fts"})
        assert response.status_code == 200, response.text
        hits: list[Any] = response.json()["hits"]
        return hits

    async def indexed() -> None:
        while not await search():  # noqa: ASYNC110 - the index tells nobody
            await asyncio.sleep(0.02)

    await asyncio.wait_for(indexed(), client.WAIT_SECONDS)
    paragraph = "在现代操作系统中，调度器需要在吞吐量、响应时间与公平之间取得平衡。" * 10
    pages = "\n\n".join(f"## {number}\n\n{paragraph}" for number in range(2_000))
    job_id = await client.create(app, markdown_request(pages) | {"format": "pdf"})
    await client.works(app, job_id)
    for _ in range(20):
        assert await search()
    # They did not wait for the document.
    assert (await client.read(app, job_id))["status"] == "running"
    assert (await app.http.post(f"/api/exports/{job_id}/cancel")).status_code == 202
    assert (await client.ended(app, job_id))["status"] == "cancelled"
