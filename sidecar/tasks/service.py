"""The user's to-dos, which people and the agent's tools write alike."""

from typing import Any

from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.tasks import store
from sidecar.tasks.schemas import Task, TaskCreate, TaskList, TaskPatch, TaskStatus
from sidecar.vault.service import VaultService


class TaskService:
    """Keeps tasks."""

    def __init__(self, database: Database, vault: VaultService) -> None:
        self._database = database
        self._vault = vault
        vault.on_trash(lambda tx, note_id: store.forget_note(tx, note_id, utc_now()))

    async def list(self, status: TaskStatus | None, page: PageQuery) -> TaskList:
        """Return a page of tasks, newest first."""
        items, total = await self._database.read(lambda conn: store.list_tasks(conn, status, page))
        return TaskList(items=items, page=page_of(total, page))

    async def create(self, request: TaskCreate) -> Task:
        """Create a task; raises ``RESOURCE_NOT_FOUND`` for a note that isn't there."""
        await self._check_note(request.note_id)
        now = utc_now()
        task = Task(
            task_id=new_id("task"),
            title=request.title,
            status=request.status,
            due_at=request.due_at,
            note_id=request.note_id,
            created_at=now,
            updated_at=now,
            completed_at=now if request.status == "done" else None,
        )
        await self._database.write(lambda tx: store.insert(tx, task))
        return task

    async def update(self, task_id: str, request: TaskPatch) -> Task:
        """Change what was sent of a task; raises ``RESOURCE_NOT_FOUND``."""
        changes: dict[str, Any] = {}
        for name in request.model_fields_set:
            value = getattr(request, name)
            if value is not None or name in ("due_at", "note_id"):
                changes[name] = value
        await self._check_note(changes.get("note_id"))

        def write(tx: Transaction) -> Task | None:
            task = store.get(tx, task_id)
            if task is None or not changes:
                return task
            updated = store.changed(task, changes, utc_now())
            store.update(tx, updated)
            return updated

        task = await self._database.write(write)
        if task is None:
            raise ProjectError("RESOURCE_NOT_FOUND")
        return task

    async def delete(self, task_id: str) -> None:
        """Delete a task; raises ``RESOURCE_NOT_FOUND``."""
        if not await self._database.write(lambda tx: store.delete(tx, task_id)):
            raise ProjectError("RESOURCE_NOT_FOUND")

    async def _check_note(self, note_id: str | None) -> None:
        if note_id is not None and not await self._vault.has_note(note_id):
            raise ProjectError("RESOURCE_NOT_FOUND", details={"note_id": note_id})
