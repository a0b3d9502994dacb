"""What the work of a job is given."""

from typing import Any

from sidecar.kernel.catalogue import Localised
from sidecar.kernel.jobs.kinds import JobKind
from sidecar.kernel.jobs.states import JobStates
from sidecar.kernel.jobs.store import Job


class JobContext:
    """A running job's way to the outside."""

    def __init__(self, states: JobStates, kind: JobKind, job: Job) -> None:
        self._states = states
        self._resource_id = kind.resource_id(job)
        self.job = job
        self._phase: str | None = None
        self._percent = 0.0

    async def progress(
        self,
        phase: str,
        current: float = 0,
        total: float = 0,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Store how far the job is and tell its followers.

        *phase* names a message ``phase.<phase>``. *total* 0 means unknown. The percentage doesn't
        fall within a phase. *extra* is told and stored beside it.
        """
        percent: float | None = None
        if phase != self._phase:
            self._phase, self._percent = phase, 0.0
        if total > 0:
            self._percent = max(self._percent, min(100.0, round(100.0 * current / total, 1)))
            percent = self._percent
        progress = {
            "phase": phase,
            "current": current,
            "total": total,
            "percent": percent,
            "message": Localised(f"phase.{phase}").to_json(),
            **(extra or {}),
        }
        await self._states.told(
            self.job.job_id, "Progress", progress, self._resource_id, progress=progress
        )

    async def emit(self, event: str, data: dict[str, Any] | None = None) -> None:
        """Append an event of the job."""
        await self._states.told(self.job.job_id, event, data or {}, self._resource_id)

    async def warn(self, warning: str) -> None:
        """Add a warning to the job, once."""
        await self._states.warned(self.job.job_id, warning)
