"""What every kind of job does from its creation to its end."""

import sqlite3
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.kernel.errors import ProjectError
from tests.protocol.jobs import PROGRESS_KEYS, Jobs
from tests.protocol.live import LiveApp, error_of, eventually
from tests.protocol.operations import KINDS
from tests.protocol.specimens import SHOWN_JOBS
from tests.protocol.test_specimens import JOB_STATUSES, check_times

CANARY = "canary-8d2a44"
ALLOWED_MOVES = {
    ("queued", "running"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("queued", "failed"),
    ("queued", "cancelled"),
}

LIMITED = [kind for kind in sorted(SHOWN_JOBS) if KINDS[kind].queue_full_code is not None]
LONG = [kind for kind in sorted(SHOWN_JOBS) if SHOWN_JOBS[kind].long is not None]


@pytest.fixture(params=sorted(SHOWN_JOBS))
def jobs(request: pytest.FixtureRequest, app: LiveApp) -> Jobs:
    return Jobs(app, request.param)


@pytest.mark.proves(
    "protocol.jobs.create-returns-at-once",
    "protocol.jobs.progress-null-while-queued",
    "protocol.jobs.started-at",
    "protocol.jobs.completed-at",
    "protocol.jobs.statuses",
)
def test_a_new_job_is_queued_also_while_everybody_is_busy(app: LiveApp, jobs: Jobs) -> None:
    with app.holding(jobs.kind, concurrency=1) as hold:
        first = jobs.new()
        hold.running(first["job_id"])
        waiting = [jobs.new() for _ in range(3)]
        for job in (first, *waiting):
            assert job["status"] == "queued"
            assert job["progress"] is None and job["started_at"] is None
            assert job["completed_at"] is None
            assert job["error"] is None and job["error_code"] is None
        for job in waiting:
            now = jobs.get(job["job_id"])
            assert (now["status"], now["started_at"]) == ("queued", None)
        running = jobs.get(first["job_id"])
        assert running["status"] == "running"
        assert running["started_at"] and running["completed_at"] is None
        assert check_times(running) >= 2


@pytest.mark.proves(
    "protocol.jobs.completed-at", "protocol.jobs.started-at", "protocol.jobs.event-matches-state"
)
def test_a_job_that_did_its_work(jobs: Jobs) -> None:
    job = jobs.completed()
    assert job["created_at"] <= job["started_at"] <= job["completed_at"]
    assert job["error"] is None and job["error_code"] is None
    terminal = [event for event in jobs.stored_events(job["job_id"]) if event.terminal]
    assert [event.event for event in terminal] == [jobs.specimen.terminal_events[0]]
    assert terminal[0].data["status"] == "completed"


@pytest.mark.proves("protocol.jobs.progress-model")
def test_progress_of_real_work(jobs: Jobs) -> None:
    told = [e for e in jobs.stored_events(jobs.completed()["job_id"]) if e.event == "Progress"]
    assert told
    for event in told:
        check_progress(event.wire_data())


def check_progress(progress: dict[str, Any]) -> None:
    """Check the one model of progress."""
    assert set(progress) == PROGRESS_KEYS
    assert isinstance(progress["phase"], str) and isinstance(progress["message"], str)
    for name in ("current", "total"):
        assert isinstance(progress[name], int | float) and not isinstance(progress[name], bool)
    percent = progress["percent"]
    if not progress["total"]:
        assert percent is None
    assert percent is None or 0 <= percent <= 100


@pytest.mark.proves("protocol.jobs.percent-range", "protocol.jobs.progress-model")
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["preparing", "running", "finishing"]),
            st.floats(0, 1e6),
            st.one_of(st.just(0), st.floats(0, 1e6), st.integers(1, 10**9)),
        ),
        max_size=12,
    )
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_percent(app: LiveApp, jobs: Jobs, steps: list[tuple[str, float, float]]) -> None:
    with app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        context = hold.running(job_id)
        reached: dict[str, float] = {}
        told: dict[str, Any] | None = None
        last_phase = None
        for phase, current, total in steps:
            app.call(context.progress(phase, current, total))
            told = [e for e in jobs.stored_events(job_id) if e.event == "Progress"][-1].wire_data()
            check_progress(told)
            assert (told["percent"] is None) == (total == 0)
            if phase != last_phase:
                reached.clear()
                last_phase = phase
            if told["percent"] is not None:
                assert told["percent"] >= reached.get(phase, 0)
                reached[phase] = told["percent"]
        now = jobs.get(job_id)
        assert (now["status"], now["progress"]) == ("running", told)


@pytest.mark.proves(
    "protocol.jobs.cancel-accepted",
    "protocol.jobs.operation-response",
    "protocol.jobs.cancel-repeated",
    "protocol.jobs.started-at",
    "protocol.jobs.completed-at",
)
@pytest.mark.parametrize("state", ["queued", "running"])
def test_cancel(app: LiveApp, jobs: Jobs, state: str) -> None:
    with app.holding(jobs.kind, concurrency=1) as hold:
        first = jobs.new()["job_id"]
        hold.running(first)
        wanted = first if state == "running" else jobs.new()["job_id"]
        answer = jobs.cancel(wanted)
        assert answer.status_code == 202
        body = answer.json()
        assert set(body) == {"status", "message"} and body["status"] == "accepted"
        assert isinstance(body["message"], str) and body["message"]
        job = jobs.ended(wanted)
        assert job["status"] == "cancelled" and job["completed_at"]
        assert (job["started_at"] is None) == (state == "queued")
        assert job["error_code"] == app.services.jobs.kinds[jobs.kind].cancelled_code
        assert wanted not in hold.contexts or state == "running"
        check_one_terminal(jobs, wanted, 2)


def check_one_terminal(jobs: Jobs, job_id: str, index: int) -> None:
    """Check that one terminal event ends the job's events, and that it is the right one."""
    events = jobs.stored_events(job_id)
    assert [event.terminal for event in events] == [False] * (len(events) - 1) + [True]
    assert events[-1].event == jobs.specimen.terminal_events[index]
    assert not {event.event for event in events[:-1]} & set(jobs.specimen.terminal_events)


@pytest.mark.proves("protocol.jobs.cancel-repeated", "protocol.sse.one-terminal")
def test_cancel_again_while_the_first_takes_effect(app: LiveApp, jobs: Jobs) -> None:
    with app.holding(jobs.kind, stubborn=True) as hold:
        job_id = jobs.new()["job_id"]
        hold.running(job_id)
        for _ in range(3):
            assert jobs.cancel(job_id).status_code == 202
            assert jobs.get(job_id)["status"] == "running"
        hold.release(job_id, jobs.outcome())
        assert jobs.ended(job_id)["status"] == "cancelled"
        check_one_terminal(jobs, job_id, 2)


@pytest.mark.proves(
    "protocol.jobs.cancel-finished",
    "protocol.jobs.terminal-is-final",
    "protocol.status.409",
    "protocol.errors.details-object",
)
@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_cancel_of_a_finished_job(app: LiveApp, jobs: Jobs, state: str) -> None:
    before = finished(app, jobs, state)
    answer = jobs.cancel(before["job_id"])
    assert answer.status_code == 409
    error = error_of(answer)
    assert error["code"] == "JOB_ALREADY_FINISHED"
    assert error["details"] == {"status": state}
    assert jobs.get(before["job_id"]) == before


def finished(app: LiveApp, jobs: Jobs, state: str) -> dict[str, Any]:
    """Return a job that has ended so."""
    if state == "completed":
        return jobs.get(jobs.completed()["job_id"])
    with app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        hold.running(job_id)
        if state == "failed":
            hold.release(job_id, ProjectError("WORKER_CRASHED"))
        else:
            jobs.cancel(job_id)
        job = jobs.ended(job_id)
    assert job["status"] == state
    return job


@pytest.mark.proves("protocol.jobs.terminal-is-final", "protocol.sse.one-terminal")
def test_a_late_result_changes_nothing(app: LiveApp, jobs: Jobs) -> None:
    with app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        context = hold.running(job_id)
        jobs.cancel(job_id)
        before = jobs.ended(job_id)
        events = jobs.stored_events(job_id)
        app.call(context.progress("running", 1, 2))
        app.call(context.emit("Late", {}))
        app.call(context.warn("LATE"))
        engine = app.services.jobs
        failure = ProjectError("WORKER_CRASHED")
        app.call(engine._states.failed(engine.kinds[jobs.kind], job_id, failure))
        assert jobs.get(job_id) == before
        assert jobs.stored_events(job_id) == events


@pytest.mark.proves(
    "protocol.jobs.failed-has-code",
    "protocol.errors.no-leak",
    "protocol.jobs.completed-at",
    "protocol.errors.third-party-mapped",
)
@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError(f"{CANARY} CUDA out of memory at /home/user/model.bin"),
        OSError(13, f"Permission denied {CANARY}", "/home/user/x"),
        sqlite3.OperationalError(f"near {CANARY}: syntax error"),
        KeyError(CANARY),
        TimeoutError(CANARY),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_an_unexpected_failure(app: LiveApp, jobs: Jobs, failure: Exception) -> None:
    with app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        hold.release(job_id, failure)
        job = jobs.ended(job_id)
    assert job["status"] == "failed" and job["completed_at"]
    assert job["error_code"] == app.services.jobs.kinds[jobs.kind].failure_code
    assert isinstance(job["error"], str) and job["error"]
    answer = app.session.get(jobs.path(job_id)).text
    events = repr(jobs.stored_events(job_id))
    for leak in (CANARY, "/home", "Traceback", type(failure).__name__):
        assert leak not in answer + events
    check_one_terminal(jobs, job_id, 1)


@pytest.mark.proves("protocol.jobs.failed-has-code")
@pytest.mark.parametrize("code", ["DATABASE_UNAVAILABLE", "WORKER_CRASHED", "WORKER_TIMEOUT"])
def test_a_failure_with_a_code(app: LiveApp, jobs: Jobs, code: str) -> None:
    kind = app.services.jobs.kinds[jobs.kind]
    shown = kind.failure_code if code.startswith("WORKER_") else code
    with app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        hold.release(job_id, ProjectError(code))
        job = jobs.ended(job_id)
    assert job["error_code"] == shown and job["error"]
    event = jobs.stored_events(job_id)[-1].wire_data()
    assert event["error"] == {"code": shown, "message": job["error"], "details": {}}


@pytest.mark.proves("protocol.jobs.transitions")
def test_moves_of_jobs(app: LiveApp, jobs: Jobs) -> None:
    for state in ("completed", "failed", "cancelled"):
        finished(app, jobs, state)
    with app.holding(jobs.kind, concurrency=1) as hold:
        hold.running(jobs.new()["job_id"])
        jobs.cancel(jobs.new()["job_id"])
    seen = app.job_moves()
    moves = {(before, after) for _, before, after in seen}
    assert moves <= ALLOWED_MOVES
    assert {status for move in moves for status in move} <= JOB_STATUSES
    ends = [job_id for job_id, _, after in seen if after in ("completed", "failed", "cancelled")]
    assert len(ends) == len(set(ends))


@pytest.mark.proves("protocol.status.429")
@pytest.mark.parametrize("jobs", LIMITED, indirect=True)
def test_a_full_queue(app: LiveApp, jobs: Jobs) -> None:
    kind = app.services.jobs.kinds[jobs.kind]
    with app.holding(jobs.kind, concurrency=1, max_queued=2) as hold:
        hold.running(jobs.new()["job_id"])
        waiting = [jobs.new()["job_id"] for _ in range(2)]
        total = app.session.get(jobs.specimen.collection).json()["page"]["total"]
        answer = jobs.request()
        assert answer.status_code == 429
        assert error_of(answer)["code"] == kind.queue_full_code
        assert app.session.get(jobs.specimen.collection).json()["page"]["total"] == total
        jobs.cancel(waiting[0])
        jobs.new()


@pytest.mark.proves("protocol.jobs.cancel-reaches-work")
@pytest.mark.parametrize("jobs", LONG, indirect=True)
def test_cancel_stops_the_work_itself(app: LiveApp, jobs: Jobs) -> None:
    specimen = jobs.specimen
    assert specimen.long is not None and specimen.work_seconds is not None
    used = specimen.work_seconds
    job_id = jobs.new(specimen.long(app))["job_id"]
    before = used(app)
    eventually(lambda: used(app) > before + 0.5, "the work is under way")
    assert jobs.get(job_id)["status"] == "running"
    assert jobs.cancel(job_id).status_code == 202
    assert jobs.ended(job_id)["status"] == "cancelled"
    # What still worked would use up the processor while these are answered.
    stopped_at, start = used(app), time.monotonic()
    for _ in range(100):
        app.anonymous.get("/health")
    assert used(app) - stopped_at < 0.5 * (time.monotonic() - start)


@pytest.mark.proves("protocol.jobs.event-matches-state")
@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_the_terminal_event_comes_with_the_state(app: LiveApp, jobs: Jobs, state: str) -> None:
    with app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        hold.running(job_id)
        follower = app.follow(job_id)
        if state == "cancelled":
            jobs.cancel(job_id)
        else:
            hold.release(job_id, RuntimeError() if state == "failed" else jobs.outcome())
        terminal = follower.result(60)
        assert terminal.data["status"] == state
        assert jobs.get(job_id)["status"] == state
