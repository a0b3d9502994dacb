"""Jobs, results and events outlive the process, also one that was killed."""

import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar
from sidecar.kernel.errors import ProjectError
from tests.conftest import LaunchSidecar
from tests.protocol.frames import Frame, replay
from tests.protocol.jobs import Jobs
from tests.protocol.live import AppClients, LiveApp, client_of, error_of, eventually
from tests.protocol.operations import BY_NAME, KINDS
from tests.protocol.specimens import JOBS, SHOWN_JOBS

HELD = (sys.executable, str(Path(__file__).with_name("held_process.py")))
STATES = ("completed", "failed", "cancelled")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], LiveApp]]:
    """What jobs of every kind and end were in a first run, and the second run on the same data."""
    folder = tmp_path_factory.mktemp("runs")
    first = LiveApp(folder)
    try:
        before = {
            f"{kind} {state}": remember(make_ended(Jobs(first, kind), state))
            for kind in SHOWN_JOBS
            for state in STATES
        }
    finally:
        first.stop()
    second = LiveApp(folder)
    yield before, second
    second.stop()


def make_ended(jobs: Jobs, state: str) -> tuple[Jobs, str]:
    """Make a job that ends so."""
    if state == "completed":
        return jobs, jobs.completed()["job_id"]
    with jobs.app.holding(jobs.kind) as hold:
        job_id = jobs.new()["job_id"]
        context = hold.running(job_id)
        jobs.app.call(context.progress("running", 1, 3))
        if state == "failed":
            hold.release(job_id, ProjectError("DATABASE_UNAVAILABLE"))
        else:
            jobs.cancel(job_id)
        jobs.ended(job_id)
    return jobs, job_id


def remember(made: tuple[Jobs, str]) -> dict[str, Any]:
    """Read all that is to stay of a job."""
    jobs, job_id = made
    return {
        "job": jobs.get(job_id),
        "events": jobs.stored_events(job_id),
        "frames": replay(jobs.app.session, jobs.events_path(job_id)) if jobs.has_stream else None,
    }


@pytest.mark.proves(
    "protocol.jobs.persisted",
    "protocol.jobs.terminal-is-final",
    "protocol.sse.replay-after-restart",
    "protocol.cursor.monotonic",
)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", sorted(SHOWN_JOBS))
def test_ended_jobs_are_as_they_were(
    runs: tuple[dict[str, Any], LiveApp], kind: str, state: str
) -> None:
    before, app = runs[0][f"{kind} {state}"], runs[1]
    jobs, job_id = Jobs(app, kind), before["job"]["job_id"]
    assert before["job"]["status"] == state
    assert remember((jobs, job_id)) == before
    if jobs.has_stream:
        cursor = before["frames"][1].sequence
        rest = replay(app.session, jobs.events_path(job_id), last_event_id=cursor)
        assert rest == before["frames"][2:]
    answer = jobs.cancel(job_id)
    assert answer.status_code == 409
    assert error_of(answer)["details"] == {"status": state}


@pytest.mark.proves("protocol.jobs.restart-recovery")
def test_a_kind_that_is_gone(tmp_path: Path) -> None:
    first = LiveApp(tmp_path)

    def leave(tx: Any) -> None:
        for job_id, status in (("gone_1", "queued"), ("gone_2", "running")):
            tx.execute(
                "INSERT INTO jobs (job_id, kind, status, request, created_at, updated_at)"
                " VALUES (?, 'gone', ?, '{}', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')",
                (job_id, status),
            )

    try:
        first.call(first.services.database.write(leave))
    finally:
        first.stop()
    second = LiveApp(tmp_path)
    try:
        for job_id in ("gone_1", "gone_2"):
            assert second.follow(job_id).result(20).data["error"]["code"] == "JOB_INTERRUPTED"
        assert second.call(second.services.jobs.counts()) == {"queued": 0, "running": 0}
    finally:
        second.stop()


class Process(AppClients):
    """The application as a process, through the launcher."""

    def __init__(self, folder: Path, sidecar: Sidecar) -> None:
        super().__init__(folder)
        self.sidecar = sidecar
        self.session = client_of(sidecar.base_url, sidecar.session_token)
        self.host = client_of(sidecar.base_url, sidecar.host_token)

    def create(self, kind: str) -> str:
        """Make a job and return its id."""
        operation = BY_NAME[f"POST {JOBS[kind].collection}"]
        answer = JOBS[kind].create(self).send(self.session, operation)
        assert answer.status_code == 202, answer.text
        # A transfer of a model has no id that anybody could ask for.
        job_id: str = answer.json().get("job_id", "")
        return job_id

    def job(self, kind: str, job_id: str) -> dict[str, Any]:
        """Read a job."""
        path = f"{JOBS[kind].collection}/{job_id}"
        job: dict[str, Any] = self.session.get(path).raise_for_status().json()
        return job

    def frames(self, kind: str, job_id: str) -> list[Frame] | None:
        """Read a job's events to the end, if its kind shows them."""
        path = f"{JOBS[kind].collection}/{job_id}/events"
        shown = f"GET {JOBS[kind].collection}/{{job_id}}/events" in BY_NAME
        return replay(self.session, path) if shown else None

    def kill(self) -> None:
        """Kill it as the system does."""
        self.session.close()
        self.host.close()
        os.kill(self.sidecar.pid, signal.SIGKILL)
        self.sidecar.stop()


@pytest.mark.proves(
    "protocol.jobs.restart-recovery", "protocol.jobs.persisted", "protocol.cursor.monotonic"
)
def test_killed_while_jobs_run_and_wait(launch_sidecar: LaunchSidecar, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    first = Process(tmp_path, launch_sidecar(executable=HELD, vault_path=vault))
    names = ("killed twice", "cancelled", "waiting")
    jobs = {kind: {name: first.create(kind) for name in names} for kind in SHOWN_JOBS}
    for kind in set(KINDS) - set(SHOWN_JOBS):
        first.create(kind)
    for kind, made in jobs.items():
        first.session.post(f"{JOBS[kind].collection}/{made['cancelled']}/cancel").raise_for_status()
        states = {name: first.job(kind, job_id)["status"] for name, job_id in made.items()}
        assert states == {
            "killed twice": "running",
            "cancelled": "running",
            "waiting": "queued",
        }
    first.kill()

    second = Process(tmp_path, launch_sidecar(executable=HELD))
    for kind, made in jobs.items():
        path = f"{JOBS[kind].collection}/{made['cancelled']}"
        assert second.job_ended(path)["status"] == "cancelled"
        assert second.job(kind, made["killed twice"])["status"] == "running"
    second.kill()

    third = Process(tmp_path, launch_sidecar())
    for kind, made in jobs.items():
        ended = {
            name: third.job_ended(f"{JOBS[kind].collection}/{job_id}")
            for name, job_id in made.items()
        }
        assert {name: job["status"] for name, job in ended.items()} == {
            "killed twice": "failed",
            "cancelled": "cancelled",
            "waiting": "completed",
        }
        assert ended["killed twice"]["error_code"] == KINDS[kind].interrupted_code
        for job in ended.values():
            check_events(third.frames(kind, job["job_id"]), job["status"])
    eventually(lambda: not unfinished(tmp_path), "the end of every job")
    third.session.close()
    third.host.close()


def unfinished(folder: Path) -> set[str]:
    """Return the jobs that haven't ended; each that has must have one terminal event, its last."""
    with contextlib.closing(sqlite3.connect(folder / "data" / "app.db")) as database:
        # One snapshot of both tables.
        database.execute("BEGIN")
        # The events of a transfer are those of its model, of which there is one here.
        resource = "CASE WHEN kind LIKE 'model_%' THEN facet ELSE job_id END"
        statuses = dict(database.execute(f"SELECT {resource}, status FROM jobs"))
        for job_id, status in statuses.items():
            query = "SELECT terminal FROM events WHERE resource_id = ? ORDER BY sequence"
            ends = [terminal for (terminal,) in database.execute(query, (job_id,))]
            assert ends == [0] * (len(ends) - 1) + [int(status in STATES)], job_id
    return {job_id for job_id, status in statuses.items() if status not in STATES}


def check_events(frames: list[Frame] | None, status: str) -> None:
    """Check that one terminal event ends a job's events, and that their sequences rise."""
    if frames is None:
        return
    assert [frame.event for frame in frames].count("Queued") == 1
    ends = [frame.data["status"] for frame in frames if frame.data.get("status") in STATES]
    assert ends == [status] and frames[-1].data["status"] == status
    sequences = [frame.sequence for frame in frames]
    assert sequences == sorted(set(sequences))
