"""The job engine: every job ends once, and none is lost."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.paging import PageQuery

Run = Callable[[JobContext], Awaitable[JobOutcome]]


class Bench:
    """Engines on one database; a second one stands for the next start."""

    def __init__(self, database: Database, events: EventLog) -> None:
        self.database = database
        self.events = events
        self.engines: list[JobEngine] = []

    async def engine(self, run: Run, *, start: bool = True, **options: Any) -> JobEngine:
        engine = JobEngine(self.database, self.events)
        self.engines.append(engine)
        engine.register(
            JobKind(
                "work",
                "work",
                run,
                failure_code="EXPORT_RENDER_FAILED",
                cancelled_code="JOB_CANCELLED",
                **options,
            )
        )
        if start:
            await engine.start()
        return engine

    async def create(self, engine: JobEngine, **request: Any) -> Job:
        return await self.database.write(lambda tx: engine.create(tx, "work", request))

    async def ended(self, engine: JobEngine, job: Job) -> tuple[Job, list[str]]:
        """Wait for the end and return the job with the names of its events."""
        names = []
        async with asyncio.timeout(20):
            async for batch in self.events.subscribe(job.job_id):
                names += [event.event for event in batch]
        return await engine.get("work", job.job_id), names


@pytest.fixture
async def bench(database: Database, events: EventLog) -> AsyncIterator[Bench]:
    made = Bench(database, events)
    yield made
    for engine in made.engines:
        await engine.stop()


async def _at_once(_: JobContext) -> JobOutcome:
    return JobOutcome({"made": 1}, {"count": 2})


async def _for_ever(context: JobContext) -> JobOutcome:
    await context.emit("Running")
    await asyncio.Event().wait()
    raise AssertionError


async def _until_running(bench: Bench, job: Job) -> None:
    async with asyncio.timeout(20):
        async for batch in bench.events.subscribe(job.job_id):
            if any(event.event == "Running" for event in batch):
                return


async def test_a_job_completes_with_its_result(bench: Bench) -> None:
    engine = await bench.engine(_at_once)
    job = await bench.create(engine, text="x")
    assert (job.status, job.request) == ("queued", {"text": "x"})
    ended, names = await bench.ended(engine, job)
    assert names == ["Queued", "Completed"]
    assert (ended.status, ended.result, ended.error, ended.starts) == (
        "completed",
        {"made": 1},
        None,
        1,
    )
    assert ended.started_at and ended.completed_at


async def test_what_a_job_makes_and_its_end_come_together(bench: Bench) -> None:
    def store(tx: Transaction) -> None:
        tx.execute("INSERT INTO settings VALUES ('made', '1')")
        raise ProjectError("STATE_CONFLICT")

    async def run(_: JobContext) -> JobOutcome:
        return JobOutcome({}, on_complete=store)

    engine = await bench.engine(run)
    ended, names = await bench.ended(engine, await bench.create(engine))
    assert (ended.status, ended.error_code, names[-1]) == ("failed", "STATE_CONFLICT", "Failed")
    kept = await bench.database.read(lambda c: c.execute("SELECT * FROM settings").fetchall())
    assert kept == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProjectError("STATE_CONFLICT", details={"a": 1}), "STATE_CONFLICT"),
        (RuntimeError("a secret of the inside"), "EXPORT_RENDER_FAILED"),
        (KeyError("x"), "EXPORT_RENDER_FAILED"),
        (TimeoutError(), "EXPORT_RENDER_FAILED"),
    ],
)
async def test_a_failure_has_a_code_and_no_inside(
    bench: Bench, error: Exception, code: str
) -> None:
    async def run(_: JobContext) -> JobOutcome:
        raise error

    engine = await bench.engine(run)
    ended, names = await bench.ended(engine, await bench.create(engine))
    assert (ended.status, ended.error_code, names) == ("failed", code, ["Queued", "Failed"])
    assert ended.completed_at
    assert "secret" not in str(ended.error and ended.error.body())
    # The engine goes on.
    again, _ = await bench.ended(engine, await bench.create(engine))
    assert again.status == "failed"


async def test_progress_never_falls_and_is_kept(bench: Bench) -> None:
    async def run(context: JobContext) -> JobOutcome:
        await context.progress("decoding")
        for current in (10, 50, 30, 100, 400):
            await context.progress("transcribing", current, 200)
        await context.warn("NO_SPEECH_DETECTED")
        await context.warn("NO_SPEECH_DETECTED")
        return JobOutcome({})

    engine = await bench.engine(run)
    job = await bench.create(engine)
    ended, _ = await bench.ended(engine, job)
    told = [
        event.data["percent"]
        for event in (await bench.events.page(job.job_id, 0, 100))[0]
        if event.event == "Progress"
    ]
    assert told == [None, 5.0, 25.0, 25.0, 50.0, 100.0]
    assert ended.progress is not None
    assert ended.progress["percent"] == 100.0
    assert ended.warnings == ["NO_SPEECH_DETECTED"]


async def test_no_more_jobs_run_than_the_kind_allows(bench: Bench) -> None:
    running, most = 0, 0
    go_on = asyncio.Event()

    async def run(context: JobContext) -> JobOutcome:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await context.emit("Running")
        await go_on.wait()
        running -= 1
        return JobOutcome({})

    engine = await bench.engine(run, concurrency=2)
    jobs = [await bench.create(engine, number=number) for number in range(6)]
    for job in jobs[:2]:
        await _until_running(bench, job)
    assert await engine.counts() == {"queued": 4, "running": 2}
    go_on.set()
    for job in jobs:
        assert (await bench.ended(engine, job))[0].status == "completed"
    assert most == 2
    started = [(await engine.get("work", job.job_id)).started_at or "" for job in jobs]
    assert started == sorted(started), "first come, first served"


async def test_a_full_queue_refuses(bench: Bench) -> None:
    engine = await bench.engine(_for_ever, max_queued=2, queue_full_code="TOO_MANY_REQUESTS")
    await _until_running(bench, await bench.create(engine))
    for _ in range(2):
        await bench.create(engine)
    with pytest.raises(ProjectError, match="TOO_MANY_REQUESTS"):
        await bench.create(engine)
    assert (await engine.list("work", PageQuery()))[1] == 3


async def test_a_queued_job_is_cancelled_at_once(bench: Bench) -> None:
    engine = await bench.engine(_for_ever)
    first, second = await bench.create(engine), await bench.create(engine)
    await _until_running(bench, first)
    await engine.cancel("work", second.job_id)
    ended, names = await bench.ended(engine, second)
    assert (ended.status, ended.starts, names) == ("cancelled", 0, ["Queued", "Cancelled"])
    assert ended.error_code == "JOB_CANCELLED"


async def test_a_running_job_is_cancelled_and_its_work_ends(bench: Bench) -> None:
    ended_work = asyncio.Event()

    async def run(context: JobContext) -> JobOutcome:
        try:
            return await _for_ever(context)
        finally:
            ended_work.set()

    engine = await bench.engine(run)
    job = await bench.create(engine)
    await _until_running(bench, job)
    await asyncio.gather(*(engine.cancel("work", job.job_id) for _ in range(5)))
    ended, names = await bench.ended(engine, job)
    assert (ended.status, names) == ("cancelled", ["Queued", "Running", "Cancelled"])
    assert ended_work.is_set()
    for _ in range(2):
        with pytest.raises(ProjectError, match="JOB_ALREADY_FINISHED"):
            await engine.cancel("work", job.job_id)
    with pytest.raises(ProjectError, match="RESOURCE_NOT_FOUND"):
        await engine.cancel("work", "work_unknown")


async def test_a_cancel_wins_over_work_that_was_just_done(bench: Bench) -> None:
    stored: list[int] = []

    async def run(context: JobContext) -> JobOutcome:
        await bench.database.write(
            lambda tx: job_store.request_cancel(tx, "work", context.job.job_id)
        )
        return JobOutcome({}, on_complete=lambda _: stored.append(1))

    engine = await bench.engine(run)
    ended, names = await bench.ended(engine, await bench.create(engine))
    assert (ended.status, names[-1], stored) == ("cancelled", "Cancelled", [])


@pytest.mark.parametrize("delay", range(0, 30, 3))
async def test_a_cancel_at_any_moment_gives_one_end(bench: Bench, delay: int) -> None:
    async def run(context: JobContext) -> JobOutcome:
        for number in range(5):
            await context.progress("running", number, 5)
        return JobOutcome({})

    engine = await bench.engine(run)
    job = await bench.create(engine)
    for _ in range(delay * 20):
        await asyncio.sleep(0)
    try:
        await engine.cancel("work", job.job_id)
    except ProjectError as error:
        assert error.code == "JOB_ALREADY_FINISHED"  # noqa: PT017 - either way is right
    ended, _ = await bench.ended(engine, job)
    assert ended.status in ("cancelled", "completed")
    told = (await bench.events.page(job.job_id, 0, 100))[0]
    assert [event.terminal for event in told] == [False] * (len(told) - 1) + [True]
    assert (ended.error_code is None) == (ended.status == "completed")


async def test_a_stop_leaves_the_job_to_the_next_start(bench: Bench) -> None:
    first = await bench.engine(_for_ever)
    running, queued = await bench.create(first), await bench.create(first)
    await _until_running(bench, running)
    await first.stop()
    with pytest.raises(ProjectError, match="SHUTTING_DOWN"):
        await bench.create(first)
    left = await first.get("work", running.job_id)
    assert (left.status, left.starts) == ("running", 0)
    second = await bench.engine(_at_once)
    for job in (running, queued):
        ended, _ = await bench.ended(second, job)
        assert (ended.status, ended.starts) == ("completed", 1)


async def test_a_job_that_kills_its_process_is_not_tried_for_ever(bench: Bench) -> None:
    first = await bench.engine(_for_ever)
    job = await bench.create(first)
    await _until_running(bench, job)
    # A killed process does no more than this: it never gets to stop().
    second = await bench.engine(_for_ever)
    async with asyncio.timeout(20):
        while (await second.get("work", job.job_id)).starts < 2:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0)
    third = await bench.engine(_at_once)
    ended, names = await bench.ended(third, job)
    assert (ended.status, ended.error_code) == ("failed", "JOB_INTERRUPTED")
    assert names[-1] == "Failed"


async def test_a_cancel_before_the_restart_holds_after_it(bench: Bench) -> None:
    first = await bench.engine(_for_ever)
    job = await bench.create(first)
    await _until_running(bench, job)
    await bench.database.write(lambda tx: job_store.request_cancel(tx, "work", job.job_id))
    second = await bench.engine(_at_once)
    ended, _ = await bench.ended(second, job)
    assert (ended.status, ended.error_code) == ("cancelled", "JOB_CANCELLED")


async def test_a_job_created_before_the_start_runs_once(bench: Bench) -> None:
    ran: list[str] = []

    async def run(context: JobContext) -> JobOutcome:
        ran.append(context.job.job_id)
        return JobOutcome({})

    engine = await bench.engine(run, start=False)
    early = await bench.create(engine)
    await asyncio.gather(engine.start(), *(bench.create(engine) for _ in range(3)))
    for job in (await engine.list("work", PageQuery()))[0]:
        await bench.ended(engine, job)
    assert len(ran) == len(set(ran)) == 4
    assert early.job_id in ran


async def test_lists_are_newest_first_and_filtered(bench: Bench) -> None:
    engine = await bench.engine(_at_once)
    jobs = [await bench.create(engine, number=number) for number in range(5)]
    for job in jobs:
        await bench.ended(engine, job)
    found, total = await engine.list("work", PageQuery(limit=2, offset=1))
    newest_first = sorted(jobs, key=lambda job: (job.created_at, job.job_id), reverse=True)
    assert [job.job_id for job in found] == [job.job_id for job in newest_first[1:3]]
    assert total == 5
    assert await engine.list("work", PageQuery(), status="failed") == ([], 0)
    identifiers = [job.job_id for job in jobs]
    assert all(a != b for a, b in itertools.pairwise(identifiers))
