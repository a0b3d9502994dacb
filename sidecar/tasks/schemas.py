"""Wire models of tasks."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from sidecar.kernel.clock import format_utc
from sidecar.kernel.paging import Page

TaskStatus = Literal["open", "done"]


def _title(text: str) -> str:
    if not text.strip() or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError
    return text


Title = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_title)]


def _due(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    try:
        return format_utc(moment)
    except OverflowError:
        raise ValueError from None


DueAt = Annotated[str, Field(json_schema_extra={"format": "date-time"}), AfterValidator(_due)]
"""A moment with a time zone, kept in UTC."""


class Task(BaseModel):
    """A to-do."""

    task_id: str
    title: str
    status: TaskStatus
    due_at: str | None = Field(description="UTC.")
    note_id: str | None = Field(
        description="The note that it belongs to; null once that is deleted."
    )
    created_at: str
    updated_at: str
    completed_at: str | None = Field(description="When it was done; null while it is open.")


class TaskList(BaseModel):
    """A page of tasks, newest first."""

    items: list[Task]
    page: Page


class TaskCreate(BaseModel):
    """A new task."""

    title: Title
    status: TaskStatus = "open"
    due_at: DueAt | None = Field(None, description="With a time zone; kept in UTC.")
    note_id: str | None = Field(None, max_length=200, description="A note of the open vault.")


class TaskPatch(BaseModel):
    """What is to change of a task; what is left out stays. null takes due_at and note_id away."""

    title: Title | None = None
    status: TaskStatus | None = None
    due_at: DueAt | None = None
    note_id: str | None = Field(None, max_length=200)
