"""Wire models of usage."""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sidecar.kernel.clock import format_utc
from sidecar.kernel.paging import empty_as_absent

AttemptStatus = Literal["completed", "failed", "cancelled"]
ExportFormat = Literal["csv", "json"]

# In a query an unencoded plus sign arrives as a blank.
_LOST_PLUS = re.compile(r"(T\S+) (\d\d:?\d\d)")


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text.strip()))
        return format_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise PydanticCustomError("moment", "Not a time in ISO 8601.") from None


Moment = Annotated[Annotated[str, AfterValidator(_moment)] | None, BeforeValidator(empty_as_absent)]
Wanted = Annotated[Annotated[str, Field(max_length=200)] | None, BeforeValidator(empty_as_absent)]


class UsageFilter(BaseModel):
    """Which attempts are meant. Filters combine with AND; an empty value counts as absent."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    from_: Moment = Field(
        None,
        alias="from",
        description="Attempts that began at this time or later. ISO 8601; without a time zone it is UTC.",
    )
    to: Moment = Field(None, description="Attempts that began before this time.")
    provider_id: Wanted = Field(None, description="`local` stands for the models of this machine.")
    model: Wanted = None
    source: Wanted = Field(
        None,
        description="Who asked: `chat`, `agent`, `benchmark`, `embedding`, `transcription`, "
        "`speaker_matching`, `probe`, …",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.from_ and self.to and self.from_ > self.to:
            raise PydanticCustomError("from_after_to", "`from` is after `to`.")
        return self


class UsageQuery(UsageFilter):
    """Filters of the sums, and where a day begins."""

    utc_offset_minutes: Annotated[
        Annotated[int, Field(ge=-14 * 60, le=14 * 60)] | None, BeforeValidator(empty_as_absent)
    ] = Field(
        0,
        description="How far the user's clock is ahead of UTC; `by_day` counts the days of that clock.",
    )


class ExportQuery(UsageFilter):
    """Filters of the export, and its format."""

    format: ExportFormat = "csv"


class UsageSums(BaseModel):
    """Sums over attempts. What a provider doesn't report is not estimated."""

    request_count: int = Field(description="Attempts, failed and cancelled ones included.")
    failed_count: int
    cancelled_count: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    token_covered_requests: int = Field(
        description="Attempts that reported tokens; the others add nothing to the sums."
    )
    audio_request_count: int = Field(
        description="Attempts of transcription and speaker matching; a remote one and the local one "
        "that took its place are two."
    )
    audio_seconds: float | None = Field(
        description="Sum of the lengths that were reported; null if none was."
    )
    audio_covered_requests: int = Field(description="Attempts that reported a length.")


class DayUsage(UsageSums):
    """The sums of a day."""

    day: str = Field(description="`YYYY-MM-DD`.", json_schema_extra={"format": "date"})


class ModelUsage(UsageSums):
    """The sums of a provider's model."""

    provider_id: str | None = Field(
        description="`local` for the models of this machine; null for a provider that was only tried "
        "and never saved."
    )
    provider_name: str | None = Field(
        description="As the provider was called at its last attempt; it may be deleted since."
    )
    model: str


class Usage(UsageSums):
    """What was used, in all, by day and by model."""

    by_day: list[DayUsage] = Field(description="Days with attempts, in order.")
    by_model: list[ModelUsage] = Field(description="Most requests first.")


class UsageRow(BaseModel):
    """One attempt, as it is exported."""

    started_at: str
    source: str
    capability: str
    provider_id: str | None
    provider_name: str | None
    model: str
    status: AttemptStatus
    error_code: str | None
    duration_ms: int
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    audio_seconds: float | None


class UsageExport(BaseModel):
    """The ledger's rows, oldest first."""

    items: list[UsageRow]
