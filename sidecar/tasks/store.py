"""The table of tasks."""

import sqlite3
from typing import Any

from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.paging import PageQuery
from sidecar.tasks.schemas import Task, TaskStatus


def _task(row: sqlite3.Row) -> Task:
    return Task(**{name: row[name] for name in Task.model_fields})


def insert(tx: Transaction, task: Task) -> None:
    """Insert a task."""
    tx.execute(
        "INSERT INTO tasks (task_id, title, status, due_at, note_id, created_at, updated_at,"
        " completed_at) VALUES (:task_id, :title, :status, :due_at, :note_id, :created_at,"
        " :updated_at, :completed_at)",
        task.model_dump(),
    )


def get(conn: Readable, task_id: str) -> Task | None:
    """Return a task."""
    row = conn.execute("SELECT * FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
    return _task(row) if row else None


def update(tx: Transaction, task: Task) -> None:
    """Store a changed task."""
    tx.execute(
        "UPDATE tasks SET title = :title, status = :status, due_at = :due_at, note_id = :note_id,"
        " updated_at = :updated_at, completed_at = :completed_at WHERE task_id = :task_id",
        task.model_dump(),
    )


def delete(tx: Transaction, task_id: str) -> bool:
    """Delete a task; False if there is none."""
    return tx.execute("DELETE FROM tasks WHERE task_id = ?", (task_id,)).rowcount > 0


def list_tasks(
    conn: Readable, status: TaskStatus | None, page: PageQuery
) -> tuple[list[Task], int]:
    """Return a page of tasks, newest first, and how many match."""
    where, parameters = ("WHERE status = ?", [status]) if status else ("", [])
    total = conn.execute(f"SELECT count(*) FROM tasks {where}", parameters).fetchone()[0]  # noqa: S608
    rows = conn.execute(
        f"SELECT * FROM tasks {where} ORDER BY created_at DESC, task_id DESC LIMIT ? OFFSET ?",  # noqa: S608
        (*parameters, page.limit, page.offset),
    )
    return [_task(row) for row in rows], total


def forget_note(tx: Transaction, note_id: str, now: str) -> None:
    """Take a deleted note off its tasks."""
    tx.execute("UPDATE tasks SET note_id = NULL, updated_at = ? WHERE note_id = ?", (now, note_id))


def changed(task: Task, changes: dict[str, Any], now: str) -> Task:
    """Return *task* with *changes*; a task is completed when it becomes done."""
    merged = task.model_copy(update={**changes, "updated_at": now})
    if merged.status == "open":
        merged.completed_at = None
    elif task.status == "open":
        merged.completed_at = now
    return merged
