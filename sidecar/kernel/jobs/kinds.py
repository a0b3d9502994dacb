"""What the engine of jobs must know of a kind of job, and what a job leaves behind."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sidecar.kernel.database import Transaction
from sidecar.kernel.jobs.store import Job

if TYPE_CHECKING:
    from sidecar.kernel.jobs.context import JobContext


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What a job that did its work leaves behind.

    *result* is kept with the job; *event_data* goes into the ``Completed`` event beside the status;
    *on_complete* runs in the transaction that completes the job.
    """

    result: dict[str, Any]
    event_data: dict[str, Any] = field(default_factory=dict)
    on_complete: Callable[[Transaction], None] | None = None


@dataclass(frozen=True, slots=True)
class JobKind:
    """What the engine must know of a kind of job.

    *run* does the work; it is cancelled like any task and must end its own work before it lets the
    cancellation through. *failure_code* stands for an exception without a project code, and for a
    worker that died or fell silent; *interrupted_code* for a job that two processes died over.
    *on_end* runs in the transaction of any terminal state, after *on_complete*. *resource_of* names
    the resource that the events are told of where that isn't the job itself.
    """

    name: str
    id_prefix: str
    run: Callable[["JobContext"], Awaitable[JobOutcome]]
    failure_code: str
    cancelled_code: str
    interrupted_code: str = "JOB_INTERRUPTED"
    not_found_code: str = "RESOURCE_NOT_FOUND"
    queue_full_code: str | None = None
    concurrency: int = 1
    max_queued: int | None = None
    on_end: Callable[[Transaction, Job], None] | None = None
    resource_of: Callable[[Job], str] | None = None
    queued_event: str = "Queued"
    completed_event: str = "Completed"
    failed_event: str = "Failed"
    cancelled_event: str = "Cancelled"

    def resource_id(self, job: Job) -> str:
        """Return the resource that the job's events belong to."""
        return self.resource_of(job) if self.resource_of else job.job_id
