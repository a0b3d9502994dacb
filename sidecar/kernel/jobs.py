"""One engine for everything that takes time: queue, progress, cancel, restart.

A job is created in its caller's transaction together with its first event, and answers at once. It
moves ``queued → running → completed | failed | cancelled``, or from ``queued`` straight to
``failed`` or ``cancelled``; a terminal state never changes, and is written together with its one
terminal event. A job that a dead process left ``running`` is taken up once more at the next start,
and fails with ``JOB_INTERRUPTED`` if that doesn't help.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from sidecar.kernel import job_store as store
from sidecar.kernel.catalogue import Localised
from sidecar.kernel.database import Database, DatabaseClosedError, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.ids import new_id
from sidecar.kernel.job_store import Job
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paging import PageQuery

log = get_logger(__name__)

T = TypeVar("T")

# A job that a dead process left running is started once more, not for ever.
STARTS_ALLOWED: Final = 2
STOP_SECONDS: Final = 4.0
# What a worker fails with when it has no code for the reason.
WORKER_CODES: Final = frozenset({"WORKER_CRASHED", "WORKER_TIMEOUT", "INTERNAL_ERROR"})


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


class JobContext:
    """A running job's way to the outside."""

    def __init__(self, engine: "JobEngine", kind: JobKind, job: Job) -> None:
        self._engine = engine
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
        await self._engine.update(
            self.job.job_id, "Progress", progress, self._resource_id, progress=progress
        )

    async def emit(self, event: str, data: dict[str, Any] | None = None) -> None:
        """Append an event of the job."""
        await self._engine.update(self.job.job_id, event, data or {}, self._resource_id)

    async def warn(self, warning: str) -> None:
        """Add a warning to the job, once."""
        await self._engine.write(lambda tx: store.add_warning(tx, self.job.job_id, warning))


class JobEngine:
    """Creates, runs, cancels and recovers jobs."""

    def __init__(self, database: Database, events: EventLog) -> None:
        self._database = database
        self._events = events
        self._kinds: dict[str, JobKind] = {}
        self._waiting: dict[str, deque[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, int] = {}
        self._cancelled: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._started = False

    @property
    def kinds(self) -> dict[str, JobKind]:
        """The kinds that are registered, by name."""
        return dict(self._kinds)

    def register(self, kind: JobKind) -> None:
        """Make *kind* known; before :meth:`start`."""
        self._kinds[kind.name] = kind
        self._waiting[kind.name] = deque()
        self._running[kind.name] = 0

    async def start(self) -> None:
        """Take up what an earlier process left, and begin to run jobs."""
        self._started = True
        for job in await self.write(store.unfinished):
            kind = self._kinds.get(job.kind)
            if job.job_id in self._tasks or (kind and job.job_id in self._waiting[kind.name]):
                # Created while this start was under way.
                continue
            if kind is None:
                # Its kind is gone from this version; nothing will ever run it.
                await self._fail_unknown(job)
            elif job.cancel_requested:
                await self._finish_cancelled(kind, job.job_id)
            elif job.status == "running" and job.starts >= STARTS_ALLOWED:
                await self._finish_failed(kind, job.job_id, ProjectError(kind.interrupted_code))
            else:
                self._waiting[kind.name].append(job.job_id)
        for name in self._kinds:
            self._dispatch(name)

    # -- creating and reading ------------------------------------------------------------------

    def create(
        self,
        tx: Transaction,
        kind_name: str,
        request: dict[str, Any],
        *,
        facet: str | None = None,
        job_id: str | None = None,
    ) -> Job:
        """Create a queued job and its first event in the caller's transaction.

        *facet* is a value that lists of this kind can be filtered by. Raises the kind's
        ``queue_full_code`` if too many wait already.
        """
        kind = self._kinds[kind_name]
        if self._stopping:
            raise ProjectError("SHUTTING_DOWN")
        if (
            kind.max_queued is not None
            and kind.queue_full_code is not None
            and store.count_queued(tx, kind_name) >= kind.max_queued
        ):
            raise ProjectError(kind.queue_full_code, details={"max_queued": kind.max_queued})
        job = store.insert(tx, job_id or new_id(kind.id_prefix), kind_name, request, facet)
        self._events.append(tx, kind.resource_id(job), kind.queued_event, {"status": "queued"})
        tx.after_commit(lambda: self._enqueue(kind_name, job.job_id))
        return job

    async def get(self, kind_name: str, job_id: str) -> Job:
        """Return a job of this kind, or raise the kind's not-found code."""
        job = await self._database.read(lambda conn: store.get(conn, kind_name, job_id))
        if job is None:
            raise ProjectError(self._kinds[kind_name].not_found_code)
        return job

    async def list(
        self,
        kind_name: str,
        query: PageQuery,
        *,
        status: str | None = None,
        facet: str | None = None,
    ) -> tuple[list[Job], int]:
        """Return a page of jobs, newest first, and how many match."""
        return await self._database.read(
            lambda conn: store.page(conn, kind_name, query.limit, query.offset, status, facet)
        )

    async def counts(self) -> dict[str, int]:
        """Return how many jobs are queued and running."""
        return await self._database.read(store.counts)

    # -- running -------------------------------------------------------------------------------

    def _enqueue(self, kind_name: str, job_id: str) -> None:
        if self._started:
            self._waiting[kind_name].append(job_id)
            self._dispatch(kind_name)

    def _dispatch(self, kind_name: str) -> None:
        kind = self._kinds[kind_name]
        waiting = self._waiting[kind_name]
        while waiting and self._running[kind_name] < kind.concurrency and not self._stopping:
            job_id = waiting.popleft()
            self._running[kind_name] += 1
            task = asyncio.create_task(self._run(kind, job_id), name=f"job-{job_id}")
            self._tasks[job_id] = task
            task.add_done_callback(partial(self._on_done, kind, job_id))

    def _on_done(self, kind: JobKind, job_id: str, _task: asyncio.Task[None]) -> None:
        self._tasks.pop(job_id, None)
        self._cancelled.discard(job_id)
        self._running[kind.name] -= 1
        self._dispatch(kind.name)

    async def _run(self, kind: JobKind, job_id: str) -> None:
        try:
            job = await self.write(lambda tx: store.mark_running(tx, job_id))
            if job is None:
                # A cancel was recorded before the work began.
                await self._finish_cancelled(kind, job_id)
                return
            outcome = await kind.run(JobContext(self, kind, job))
            await asyncio.shield(self._finish_completed(kind, job_id, outcome))
        except asyncio.CancelledError:
            if job_id in self._cancelled:
                await self._finish_cancelled(kind, job_id)
            elif self._stopping:
                await self._give_back(job_id)
            else:
                raise
        except ProjectError as error:
            if self._stopping and error.code in ("SHUTTING_DOWN", "WORKER_CRASHED"):
                await self._give_back(job_id)
            else:
                failure = ProjectError(kind.failure_code) if error.code in WORKER_CODES else error
                await self._finish_failed(kind, job_id, failure)
        except DatabaseClosedError:
            log.warning("job.interrupted_by_stop", extra={"job_id": job_id})
        except Exception:
            log.exception("job.unexpected_failure", extra={"job_id": job_id, "kind": kind.name})
            await self._finish_failed(kind, job_id, ProjectError(kind.failure_code))

    async def _give_back(self, job_id: str) -> None:
        """Leave the job as it is for the next start; a stop isn't the job's fault."""
        with contextlib.suppress(DatabaseClosedError):
            await self.write(lambda tx: store.forget_start(tx, job_id))

    async def update(
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

        await self.write(change)

    async def write(self, run: Callable[[Transaction], T]) -> T:
        """Run a write and wait until it is durable."""
        return await self._database.write(run)

    # -- ending --------------------------------------------------------------------------------

    async def _finish_completed(self, kind: JobKind, job_id: str, outcome: JobOutcome) -> None:
        def change(tx: Transaction) -> None:
            # Whoever asked for a cancel first gets it, even if the work was done by then.
            if store.is_cancel_requested(tx, job_id):
                self._end(tx, kind, job_id, "cancelled", ProjectError(kind.cancelled_code), None)
                return
            if outcome.on_complete is not None:
                outcome.on_complete(tx)
            self._end(tx, kind, job_id, "completed", None, outcome)

        await self.write(change)

    async def _finish_failed(self, kind: JobKind, job_id: str, error: ProjectError) -> None:
        log.warning("job.failed", extra={"job_id": job_id, "kind": kind.name, "code": error.code})
        await self.write(lambda tx: self._end(tx, kind, job_id, "failed", error, None))

    async def _finish_cancelled(self, kind: JobKind, job_id: str) -> None:
        error = ProjectError(kind.cancelled_code)
        await self.write(lambda tx: self._end(tx, kind, job_id, "cancelled", error, None))

    async def _fail_unknown(self, job: Job) -> None:
        error = ProjectError("JOB_INTERRUPTED")

        def change(tx: Transaction) -> None:
            if store.end(tx, job.job_id, "failed", error, None) is not None:
                data = {"status": "failed", "error": _event_error(error)}
                self._events.append(tx, job.job_id, "Failed", data, terminal=True)

        await self.write(change)

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

    async def cancel(self, kind_name: str, job_id: str) -> None:
        """Record that a job is to be cancelled and stop its work.

        Returns once the request is recorded; the job's state and its terminal event tell the rest.
        Raises the kind's not-found code, or ``JOB_ALREADY_FINISHED``.
        """
        kind = self._kinds[kind_name]

        def change(tx: Transaction) -> Job | None:
            job = store.request_cancel(tx, kind_name, job_id)
            if job is not None and job.status == "queued":
                self._end(tx, kind, job_id, "cancelled", ProjectError(kind.cancelled_code), None)
            return job

        job = await self.write(change)
        if job is None:
            raise ProjectError(kind.not_found_code)
        if job.is_terminal:
            raise ProjectError("JOB_ALREADY_FINISHED", details={"status": job.status})
        if job.status == "queued":
            with contextlib.suppress(ValueError):
                self._waiting[kind_name].remove(job_id)
        else:
            self._stop_task(kind, job_id)

    def _stop_task(self, kind: JobKind, job_id: str) -> None:
        task = self._tasks.get(job_id)
        if task is not None:
            if job_id not in self._cancelled:
                self._cancelled.add(job_id)
                task.cancel()
        elif job_id in self._waiting[kind.name]:
            # Taken over from an earlier process, and not started again yet.
            self._waiting[kind.name].remove(job_id)
            ending = asyncio.create_task(self._finish_cancelled(kind, job_id))
            self._background.add(ending)
            ending.add_done_callback(self._background.discard)

    async def stop(self) -> None:
        """Stop the work of every running job and leave the jobs to the next start."""
        self._stopping = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)


def _event_error(error: ProjectError) -> dict[str, Any]:
    """Return an error as an event holds it, put into words when it is read."""
    return {
        "code": error.code,
        "message": error.localised().to_json(),
        "details": error.details,
    }
