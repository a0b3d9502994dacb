"""Writes each attempt of a chat call to the ledger, once, however it ends."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol

from sidecar.kernel.clock import utc_now
from sidecar.kernel.errors import ProjectError
from sidecar.providers.schemas.model_call import TokenUsage
from sidecar.usage.schemas import AttemptStatus
from sidecar.usage.service import Attempt, Capability


class UsageRecorder(Protocol):
    """Takes down attempts; the ledger."""

    async def record(self, attempt: Attempt) -> None:
        """Write an attempt; its failure must not become the caller's."""
        ...


@dataclass(slots=True)
class AttemptRecord:
    """The attempts of one call: begun again for each repeat, ended exactly once each."""

    recorder: UsageRecorder
    source: str
    provider_id: str | None
    provider_name: str | None
    model: str
    capability: Capability = "chat"
    answered: bool = False
    """Whether an answer has begun: from then on nothing is repeated."""
    _started_at: str | None = None
    _clock: float = 0.0
    _pending: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self) -> None:
        """An attempt starts now."""
        self._started_at, self._clock = utc_now(), time.monotonic()

    async def completed(self, usage: TokenUsage | None = None) -> None:
        """The attempt succeeded."""
        await self._end("completed", None, usage)

    async def failed(self, error: ProjectError, usage: TokenUsage | None = None) -> None:
        """The attempt failed."""
        await self._end("failed", error.code, usage)

    async def cancelled(self, usage: TokenUsage | None = None) -> None:
        """The attempt was given up; does nothing for one that has ended already."""
        await self._end("cancelled", None, usage)

    async def _end(self, status: AttemptStatus, code: str | None, usage: TokenUsage | None) -> None:
        if self._started_at is None:
            return
        attempt = Attempt(
            source=self.source,
            capability=self.capability,
            provider_id=self.provider_id,
            provider_name=self.provider_name,
            model=self.model,
            started_at=self._started_at,
            duration_ms=round((time.monotonic() - self._clock) * 1000),
            status=status,
            error_code=code,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            total_tokens=usage.total_tokens if usage else None,
        )
        self._started_at = None
        # Whoever cancels the call doesn't cancel what it cost.
        writing = asyncio.create_task(self.recorder.record(attempt))
        self._pending.add(writing)
        writing.add_done_callback(self._pending.discard)
        await asyncio.shield(writing)
