"""One engine for everything that takes time: queue, progress, cancel, restart.

A job is created in its caller's transaction together with its first event, and answers at once. It
moves ``queued → running → completed | failed | cancelled``, or from ``queued`` straight to
``failed`` or ``cancelled``; a terminal state never changes, and is written together with its one
terminal event. A job that a dead process left ``running`` is taken up once more at the next start,
and fails with ``JOB_INTERRUPTED`` if that doesn't help.
"""

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from sidecar.kernel.database import Database, DatabaseClosedError, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.ids import new_id
from sidecar.kernel.jobs import store
from sidecar.kernel.jobs.context import JobContext
from sidecar.kernel.jobs.kinds import JobKind, JobOutcome
from sidecar.kernel.jobs.states import JobStates
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paging import PageQuery

__all__ = ["WORKER_CODES", "Job", "JobContext", "JobEngine", "JobKind", "JobOutcome"]

log = get_logger(__name__)

# A job that a dead process left running is started once more, not for ever.
STARTS_ALLOWED: Final = 2
STOP_SECONDS: Final = 4.0
# How often an end that could not be written down, on a full disk, is tried again.
RETRY_SECONDS: Final = 1.0
# What a worker fails with when it has no code for the reason.
WORKER_CODES: Final = frozenset({"WORKER_CRASHED", "WORKER_TIMEOUT", "INTERNAL_ERROR"})


class JobEngine:
    """Creates, runs, cancels and recovers jobs."""

    def __init__(self, database: Database, events: EventLog) -> None:
        self._database = database
        self._events = events
        self._states = JobStates(database, events)
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
        for job in await self._database.write(store.unfinished):
            kind = self._kinds.get(job.kind)
            if job.job_id in self._tasks or (kind and job.job_id in self._waiting[kind.name]):
                # Created while this start was under way.
                continue
            if kind is None:
                await self._states.failed_without_kind(job)
            elif job.cancel_requested:
                await self._states.cancelled(kind, job.job_id)
            elif job.status == "running" and job.starts >= STARTS_ALLOWED:
                await self._states.failed(kind, job.job_id, ProjectError(kind.interrupted_code))
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
            job = await self._database.write(lambda tx: store.mark_running(tx, job_id))
            if job is None:
                # A cancel was recorded before the work began.
                await self._states.cancelled(kind, job_id)
                return
            outcome = await kind.run(JobContext(self._states, kind, job))
            await asyncio.shield(
                self._until_written(lambda: self._states.completed(kind, job_id, outcome))
            )
        except asyncio.CancelledError:
            if job_id in self._cancelled:
                await self._until_written(lambda: self._states.cancelled(kind, job_id))
            elif self._stopping:
                await self._give_back(job_id)
            else:
                raise
        except ProjectError as error:
            if self._stopping and error.code in ("SHUTTING_DOWN", "WORKER_CRASHED"):
                await self._give_back(job_id)
            else:
                failure = ProjectError(kind.failure_code) if error.code in WORKER_CODES else error
                await self._states.failed(kind, job_id, failure)
        except DatabaseClosedError:
            log.warning("job.interrupted_by_stop", extra={"job_id": job_id})
        except sqlite3.OperationalError as error:
            log.warning("job.not_written", extra={"job_id": job_id, "reason": _reason(error)})
            # The attribute is there for errors of SQLite itself, not for those that the module makes up.
            full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            code = "DISK_SPACE_INSUFFICIENT" if full else kind.failure_code
            await self._until_written(lambda: self._states.failed(kind, job_id, ProjectError(code)))
        except Exception:
            log.exception("job.unexpected_failure", extra={"job_id": job_id, "kind": kind.name})
            await self._states.failed(kind, job_id, ProjectError(kind.failure_code))

    async def _until_written(self, end: Callable[[], Awaitable[None]]) -> None:
        """Write down a job's end as soon as the disk has room for it: its work isn't lost meanwhile."""
        while True:
            try:
                await end()
            except sqlite3.OperationalError as error:
                log.warning("job.end_not_written", extra={"reason": _reason(error)})
                if self._stopping:
                    raise DatabaseClosedError from error
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _give_back(self, job_id: str) -> None:
        """Leave the job as it is for the next start; a stop isn't the job's fault."""
        with contextlib.suppress(DatabaseClosedError):
            await self._database.write(lambda tx: store.forget_start(tx, job_id))

    async def cancel(self, kind_name: str, job_id: str) -> None:
        """Record that a job is to be cancelled and stop its work.

        Returns once the request is recorded; the job's state and its terminal event tell the rest.
        Raises the kind's not-found code, or ``JOB_ALREADY_FINISHED``.
        """
        kind = self._kinds[kind_name]

        def change(tx: Transaction) -> Job | None:
            job = store.request_cancel(tx, kind_name, job_id)
            if job is not None and job.status == "queued":
                self._states.end_cancelled(tx, kind, job_id)
            return job

        job = await self._database.write(change)
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
            ending = asyncio.create_task(self._states.cancelled(kind, job_id))
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


def _reason(error: sqlite3.OperationalError) -> str:
    """Return a word for logs: SQLite's name of the error, never its text, which may quote."""
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
