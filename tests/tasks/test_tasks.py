"""The user's to-dos."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.tasks.schemas import TaskCreate
from tests.app_client import RunningApp, running_app


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """A running application with an empty vault."""
    async with running_app(tmp_path) as running:
        yield running


async def create(app: RunningApp, **fields: Any) -> dict[str, Any]:
    """Create a task and return it."""
    answer = await app.http.post("/api/tasks", json={"title": "buy milk", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.proves("vault.tasks.create", "vault.tasks.fields")
async def test_fields(app: RunningApp) -> None:
    task = await create(app, title="买菜 😀")
    assert task["task_id"]
    assert task == {
        "task_id": task["task_id"],
        "title": "买菜 😀",
        "status": "open",
        "due_at": None,
        "note_id": None,
        "created_at": task["created_at"],
        "updated_at": task["created_at"],
        "completed_at": None,
    }
    done = await create(app, status="done", due_at="2026-09-01T10:00:00+08:00")
    assert done["completed_at"] is not None
    assert done["due_at"] == "2026-09-01T02:00:00.000Z"
    for body in (
        {},
        {"title": ""},
        {"title": " "},
        {"title": "x" * 501},
        {"title": "x", "status": "later"},
        {"title": "x", "due_at": "tomorrow"},
        {"title": "x", "due_at": "2026-09-01T10:00:00"},
        {"title": "x", "due_at": 1767225600},
        {"title": "x", "due_at": "9999-12-31T23:59:59-14:00"},
    ):
        answer = await app.http.post("/api/tasks", json=body)
        assert answer.status_code == 422, body
    assert len((await create(app, title="x" * 500))["title"]) == 500
    answer = await app.http.post("/api/tasks", json={"title": "x", "note_id": "note_0"})
    assert answer.status_code == 404


@pytest.mark.proves("vault.tasks.list")
async def test_list(app: RunningApp) -> None:
    titles = [f"task {number}" for number in range(4)]
    tasks = [await create(app, title=title) for title in titles]
    await app.http.patch(f"/api/tasks/{tasks[1]['task_id']}", json={"status": "done"})
    listed = (await app.http.get("/api/tasks", params={"limit": 2, "offset": 1})).json()
    assert [item["title"] for item in listed["items"]] == ["task 2", "task 1"]
    assert listed["page"] == {"total": 4, "limit": 2, "offset": 1}
    for status, expected in (("done", ["task 1"]), ("open", ["task 3", "task 2", "task 0"])):
        listed = (await app.http.get("/api/tasks", params={"status": status})).json()
        assert [item["title"] for item in listed["items"]] == expected
    assert (await app.http.get("/api/tasks", params={"status": "never"})).status_code == 422
    assert len((await app.http.get("/api/tasks", params={"status": ""})).json()["items"]) == 4


@pytest.mark.proves("vault.tasks.patch")
async def test_patch(app: RunningApp) -> None:
    task = await create(app, due_at="2026-09-01T10:00:00Z")
    path = f"/api/tasks/{task['task_id']}"
    assert (await app.http.patch(path, json={})).json() == task
    done = (await app.http.patch(path, json={"status": "done"})).json()
    assert (done["status"], done["title"], done["due_at"]) == ("done", "buy milk", task["due_at"])
    assert done["completed_at"] is not None
    again = (await app.http.patch(path, json={"status": "done", "title": "bought"})).json()
    assert (again["completed_at"], again["title"]) == (done["completed_at"], "bought")
    reopened = (await app.http.patch(path, json={"status": "open", "due_at": None})).json()
    assert (reopened["completed_at"], reopened["due_at"]) == (None, None)
    for body in ({"status": "later"}, {"title": ""}, {"due_at": 7.5}):
        assert (await app.http.patch(path, json=body)).status_code == 422, body
    listed = (await app.http.get("/api/tasks")).json()
    assert listed["items"] == [reopened]


@pytest.mark.proves("vault.tasks.delete")
async def test_delete(app: RunningApp) -> None:
    path = f"/api/tasks/{(await create(app))['task_id']}"
    assert (await app.http.delete(path)).status_code == 204
    for answer in (await app.http.delete(path), await app.http.patch(path, json={"title": "x"})):
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "RESOURCE_NOT_FOUND"
    assert (await app.http.get("/api/tasks")).json()["items"] == []


@pytest.mark.proves("vault.tasks.persistence")
async def test_tasks_outlive_restarts_and_notes(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        note = (await app.http.post("/api/notes", json={"title": "Note"})).json()
        task = await create(app, note_id=note["note_id"])
        assert task["note_id"] == note["note_id"]
    async with running_app(tmp_path) as app:
        assert (await app.http.get("/api/tasks")).json()["items"] == [task]
        await app.http.delete(f"/api/notes/{note['note_id']}")
        (kept,) = (await app.http.get("/api/tasks")).json()["items"]
        assert (kept["task_id"], kept["note_id"]) == (task["task_id"], None)


async def test_a_task_made_inside_the_program_is_listed(app: RunningApp) -> None:
    # The agent's task tool calls the service that stands behind the path.
    task = await app.services.tasks.create(TaskCreate(title="from the agent"))
    (listed,) = (await app.http.get("/api/tasks")).json()["items"]
    assert listed == task.model_dump()
