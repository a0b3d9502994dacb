"""What model calls used: written once an attempt, summed and exported.

``UsageLedger`` is what callers of models write to; ``UsageService`` is what the paths read.
"""

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from sidecar.kernel.clock import format_utc
from sidecar.kernel.database import Database, DatabaseClosedError, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.usage import store
from sidecar.usage.export import UsageWriter
from sidecar.usage.schemas import (
    AttemptStatus,
    DayUsage,
    ModelUsage,
    Usage,
    UsageFilter,
    UsageQuery,
    UsageRow,
    UsageSums,
)

log = get_logger(__name__)

LOCAL_PROVIDER: Final = "local"
"""The ``provider_id`` of attempts that a model of this machine made."""

# Rows that an export reads at a time: its memory stays flat, and no reader is held for long.
_EXPORTED_AT_ONCE: Final = 1000

Capability = Literal["chat", "embedding", "transcription", "speaker_matching"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a model, however it ended. What wasn't reported is None and never estimated."""

    source: str
    """Who asked: ``chat``, ``agent``, ``benchmark``, ``embedding``, ``transcription``,
    ``speaker_matching``, ``probe``, …"""
    capability: Capability
    provider_id: str | None
    """:data:`LOCAL_PROVIDER` for a model of this machine, None for a provider that isn't saved."""
    provider_name: str | None
    model: str
    started_at: str
    """UTC, as :func:`sidecar.kernel.clock.utc_now` writes it."""
    duration_ms: int
    status: AttemptStatus
    error_code: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    audio_seconds: float | None = None


@dataclass(slots=True)
class Reported:
    """What an attempt that is under way has reported so far; its maker fills it in."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    audio_seconds: float | None = None


class UsageLedger:
    """Takes down attempts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, attempt: Attempt) -> None:
        """Write an attempt; returns once it is durable, and the write survives a cancel.

        A ledger that can't be written loses the entry, with an error in the log: what the model
        answered is not lost for it.
        """
        try:
            await self._database.write(lambda tx: self.record_in(tx, attempt))
        except (sqlite3.Error, DatabaseClosedError) as error:
            log.error("usage.not_recorded", extra={"reason": type(error).__name__})

    @staticmethod
    def record_in(tx: Transaction, attempt: Attempt) -> None:
        """Write an attempt as part of a larger write."""
        store.insert(tx, asdict(attempt))

    @asynccontextmanager
    async def attempt(
        self,
        *,
        source: str,
        capability: Capability,
        provider_id: str | None,
        provider_name: str | None,
        model: str,
    ) -> AsyncIterator[Reported]:
        """Measure and write the attempt that is made inside, with how it ended.

        A :class:`ProjectError` gives its code, a cancel the status ``cancelled``; both go on to the
        caller once the attempt is written.
        """
        reported, started, clock = Reported(), datetime.now(UTC), time.monotonic()
        status: AttemptStatus = "failed"
        error_code: str | None = "INTERNAL_ERROR"
        try:
            yield reported
            status, error_code = "completed", None
        except ProjectError as error:
            error_code = error.code
            raise
        except (asyncio.CancelledError, GeneratorExit):
            status, error_code = "cancelled", None
            raise
        finally:
            await self.record(
                Attempt(
                    source=source,
                    capability=capability,
                    provider_id=provider_id,
                    provider_name=provider_name,
                    model=model,
                    started_at=format_utc(started),
                    duration_ms=round((time.monotonic() - clock) * 1000),
                    status=status,
                    error_code=error_code,
                    **asdict(reported),
                )
            )


class UsageService:
    """Sums and exports the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sums(self, query: UsageQuery) -> Usage:
        """Return the sums over the attempts that the filters leave, in all, by day and by model."""
        offset = query.utc_offset_minutes or 0
        rows = await self._database.read(lambda conn: store.sums(conn, query, offset))
        days: dict[str, list[sqlite3.Row]] = defaultdict(list)
        models: dict[tuple[str | None, str], list[sqlite3.Row]] = defaultdict(list)
        for row in rows:
            days[row["day"]].append(row)
            models[row["provider_id"], row["model"]].append(row)
        by_model = [
            ModelUsage(
                provider_id=provider_id,
                provider_name=max(parts, key=lambda part: int(part["last_attempt"]))[
                    "provider_name"
                ],
                model=model,
                **_added(parts),
            )
            for (provider_id, model), parts in models.items()
        ]
        by_model.sort(key=lambda part: (-part.request_count, part.provider_id or "", part.model))
        return Usage(
            **_added(rows),
            by_day=[DayUsage(day=day, **_added(parts)) for day, parts in days.items()],
            by_model=by_model,
        )

    async def export(self, wanted: UsageFilter, writer: UsageWriter) -> AsyncIterator[str]:
        """Yield the file part by part: the attempts that there were when it began, oldest first."""
        until = await self._database.read(store.last_number)
        yield writer.head()
        after = 0
        while True:
            rows = await self._database.read(
                lambda conn, after=after: store.rows_between(  # type: ignore[misc]
                    conn, wanted, after, until, _EXPORTED_AT_ONCE
                )
            )
            if not rows:
                break
            after = rows[-1]["attempt_no"]
            yield writer.rows([_exported(row) for row in rows])
        yield writer.tail()


def _added(parts: Sequence[sqlite3.Row]) -> dict[str, Any]:
    """Return the sums of *parts*; what no part has a value for has none."""
    sums: dict[str, Any] = {}
    for name in UsageSums.model_fields:
        values = [part[name] for part in parts if part[name] is not None]
        sums[name] = sum(values) if values or name != "audio_seconds" else None
    return sums


def _exported(row: sqlite3.Row) -> UsageRow:
    values: dict[str, Any] = {name: row[name] for name in UsageRow.model_fields}
    return UsageRow(**values)
