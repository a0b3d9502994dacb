"""Wire models that every kind of job shares."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from sidecar.kernel.catalogue import localise, text


class JobProgress(BaseModel):
    """How far a job is."""

    phase: str = Field(description="What is being done now, a stable name.")
    current: float = Field(
        description="How much of `total` is done; seconds of sound while transcribing."
    )
    total: float = Field(description="The whole; 0 while it isn't known.")
    percent: float | None = Field(
        description="0 to 100 within the phase; null while the whole isn't known. 100 doesn't mean "
        "that the job is completed: its status says so."
    )
    message: str = Field(description="What a person may read, in the language of the request.")

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Self | None:
        """Return a job's stored progress in the language of the request; None if it has none."""
        return cls.model_validate(localise(stored)) if stored else None


class OperationResponse(BaseModel):
    """A request was recorded; its effect is told elsewhere."""

    status: Literal["accepted"]
    message: str = Field(description="What a person may read, in the language of the request.")

    @classmethod
    def accepted(cls, key: str) -> Self:
        """Return the answer with the catalogue's message ``operation.<key>``."""
        return cls(status="accepted", message=text(f"operation.{key}"))
