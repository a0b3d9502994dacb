"""Paths of tasks."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator

from sidecar.kernel.errors import error_responses
from sidecar.kernel.paging import PageQuery, empty_as_absent
from sidecar.tasks.schemas import Task, TaskCreate, TaskList, TaskPatch, TaskStatus
from sidecar.tasks.service import TaskService


class TaskListQuery(PageQuery):
    """Filters of the list of tasks."""

    status: Annotated[TaskStatus | None, BeforeValidator(empty_as_absent)] = None


def build_router(service: TaskService) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["tasks"])

    @router.get("/api/tasks", summary="List tasks")
    async def list_tasks(query: Annotated[TaskListQuery, Query()]) -> TaskList:
        """The user's tasks, newest first, those made by the agent included."""
        return await service.list(query.status, query)

    @router.post(
        "/api/tasks",
        status_code=201,
        summary="Create a task",
        responses=error_responses("RESOURCE_NOT_FOUND", "VAULT_NOT_OPEN"),
    )
    async def create_task(request: TaskCreate) -> Task:
        """A note can be named; it has to exist."""
        return await service.create(request)

    @router.patch(
        "/api/tasks/{task_id}",
        summary="Change a task",
        responses=error_responses("RESOURCE_NOT_FOUND", "VAULT_NOT_OPEN"),
    )
    async def update_task(task_id: str, request: TaskPatch) -> Task:
        """Change what is sent. `done` sets `completed_at`, `open` clears it."""
        return await service.update(task_id, request)

    @router.delete(
        "/api/tasks/{task_id}",
        status_code=204,
        summary="Delete a task",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def delete_task(task_id: str) -> Response:
        """Delete the task for good."""
        await service.delete(task_id)
        return Response(status_code=204)

    return router
