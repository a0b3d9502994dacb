"""Wire models of tasks."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field

from sidecar.kernel.clock import format_utc
from sidecar.kernel.paging import Page

TaskStatus = Literal["open", "done"]


def _title(text: str) -> str:
    if not text.strip() or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError
    return text


Title = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_title)]


def due_text(moment: datetime | None) -> str | None:
    """Return a due time as it is stored."""
    return None if moment is None else format_utc(moment.astimezone(UTC))


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
    due_at: AwareDatetime | None = Field(None, description="With a time zone; kept in UTC.")
    note_id: str | None = Field(None, max_length=200, description="A note of the open vault.")


class TaskPatch(BaseModel):
    """What is to change of a task; what is left out stays. null takes due_at and note_id away."""

    title: Title | None = None
    status: TaskStatus | None = None
    due_at: AwareDatetime | None = None
    note_id: str | None = Field(None, max_length=200)
