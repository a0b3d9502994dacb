"""What becomes of a job, written together with the event that tells of it."""

from typing import Any

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.jobs import store
from sidecar.kernel.jobs.kinds import JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.logging import get_logger

log = get_logger(__name__)


class JobStates:
    """Writes the states of jobs. A terminal state never changes, and has its one terminal event."""

    def __init__(self, database: Database, events: EventLog) -> None:
        self._database = database
        self._events = events

    async def told(
        self,
        job_id: str,
        event: str,
        data: dict[str, Any],
        resource_id: str,
        *,
        progress: dict[str, Any] | None = None,
    ) -> None:
        """Append an event of a job that hasn't ended, and store its progress with it."""

        def change(tx: Transaction) -> None:
            if store.touch(tx, job_id, progress):
                self._events.append(tx, resource_id, event, data)

        await self._database.write(change)

    async def warned(self, job_id: str, warning: str) -> None:
        """Add a warning to a job, once."""
        await self._database.write(lambda tx: store.add_warning(tx, job_id, warning))

    async def completed(self, kind: JobKind, job_id: str, outcome: JobOutcome) -> None:
        """Complete a job, unless its cancel was recorded before: whoever asked for that first gets it."""

        def change(tx: Transaction) -> None:
            if store.is_cancel_requested(tx, job_id):
                self.end_cancelled(tx, kind, job_id)
                return
            if outcome.on_complete is not None:
                outcome.on_complete(tx)
            self._end(tx, kind, job_id, "completed", None, outcome)

        await self._database.write(change)

    async def failed(self, kind: JobKind, job_id: str, error: ProjectError) -> None:
        """Fail a job."""
        log.warning("job.failed", extra={"job_id": job_id, "kind": kind.name, "code": error.code})
        await self._database.write(lambda tx: self._end(tx, kind, job_id, "failed", error, None))

    async def cancelled(self, kind: JobKind, job_id: str) -> None:
        """Cancel a job."""
        await self._database.write(lambda tx: self.end_cancelled(tx, kind, job_id))

    def end_cancelled(self, tx: Transaction, kind: JobKind, job_id: str) -> None:
        """Cancel a job in the caller's transaction."""
        self._end(tx, kind, job_id, "cancelled", ProjectError(kind.cancelled_code), None)

    async def failed_without_kind(self, job: Job) -> None:
        """Fail a job whose kind this version doesn't have: nothing will ever run it."""
        error = ProjectError("JOB_INTERRUPTED")

        def change(tx: Transaction) -> None:
            if store.end(tx, job.job_id, "failed", error, None) is not None:
                data = {"status": "failed", "error": _event_error(error)}
                self._events.append(tx, job.job_id, "Failed", data, terminal=True)

        await self._database.write(change)

    def _end(
        self,
        tx: Transaction,
        kind: JobKind,
        job_id: str,
        status: str,
        error: ProjectError | None,
        outcome: JobOutcome | None,
    ) -> None:
        job = store.end(tx, job_id, status, error, outcome.result if outcome else None)
        if job is None:
            return
        if kind.on_end is not None:
            kind.on_end(tx, job)
        data: dict[str, Any] = {"status": status}
        if outcome is not None:
            data |= outcome.event_data
        if error is not None:
            data["error"] = _event_error(error)
        name = {
            "completed": kind.completed_event,
            "failed": kind.failed_event,
            "cancelled": kind.cancelled_event,
        }[status]
        self._events.append(tx, kind.resource_id(job), name, data, terminal=True)


def _event_error(error: ProjectError) -> dict[str, Any]:
    """Return an error as an event holds it, put into words when it is read."""
    return {
        "code": error.code,
        "message": error.localised().to_json(),
        "details": error.details,
    }
