"""The table of jobs."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, Final, Literal

from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.errors import ProjectError

JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is stored. ``progress`` and messages of errors are put into words on output."""

    job_id: str
    kind: str
    status: JobStatus
    request: dict[str, Any]
    result: dict[str, Any] | None
    progress: dict[str, Any] | None
    warnings: list[str]
    error_code: str | None
    error_params: dict[str, Any]
    error_details: dict[str, Any]
    starts: int
    cancel_requested: bool
    created_at: str
    started_at: str | None
    updated_at: str
    completed_at: str | None

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self.status in TERMINAL

    @property
    def error(self) -> ProjectError | None:
        """The error that the job ended with."""
        if self.error_code is None:
            return None
        return ProjectError(self.error_code, details=self.error_details, **self.error_params)


def _job_of(row: sqlite3.Row) -> Job:
    return Job(
        job_id=row["job_id"],
        kind=row["kind"],
        status=row["status"],
        request=json.loads(row["request"]),
        result=json.loads(row["result"]) if row["result"] else None,
        progress=json.loads(row["progress"]) if row["progress"] else None,
        warnings=json.loads(row["warnings"]),
        error_code=row["error_code"],
        error_params=json.loads(row["error_params"] or "{}"),
        error_details=json.loads(row["error_details"] or "{}"),
        starts=row["starts"],
        cancel_requested=bool(row["cancel_requested"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        updated_at=row["updated_at"],
        completed_at=row["completed_at"],
    )


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def insert(
    tx: Transaction, job_id: str, kind: str, request: dict[str, Any], facet: str | None
) -> Job:
    """Insert a queued job and return it."""
    now = utc_now()
    row = tx.execute(
        "INSERT INTO jobs (job_id, kind, status, request, facet, created_at, updated_at)"
        " VALUES (?, ?, 'queued', ?, ?, ?, ?) RETURNING *",
        (job_id, kind, _dump(request), facet, now, now),
    ).fetchone()
    return _job_of(row)


def get(conn: Readable, kind: str, job_id: str) -> Job | None:
    """Return a job of this kind."""
    row = conn.execute(
        "SELECT * FROM jobs WHERE job_id = ? AND kind = ?", (job_id, kind)
    ).fetchone()
    return _job_of(row) if row else None


def page(
    conn: Readable, kind: str, limit: int, offset: int, status: str | None, facet: str | None
) -> tuple[list[Job], int]:
    """Return jobs newest first, and how many match."""
    where = "kind = :kind AND (:status IS NULL OR status = :status) AND (:facet IS NULL OR facet = :facet)"
    values = {"kind": kind, "status": status, "facet": facet, "limit": limit, "offset": offset}
    total = conn.execute(f"SELECT count(*) FROM jobs WHERE {where}", values).fetchone()[0]  # noqa: S608
    rows = conn.execute(
        f"SELECT * FROM jobs WHERE {where}"  # noqa: S608 - a constant
        " ORDER BY created_at DESC, job_id DESC LIMIT :limit OFFSET :offset",
        values,
    )
    return [_job_of(row) for row in rows], total


def unfinished(conn: Readable) -> list[Job]:
    """Return the jobs that haven't ended: those that ran first, then in the order of creation."""
    rows = conn.execute(
        "SELECT * FROM jobs WHERE status IN ('queued', 'running')"
        " ORDER BY status = 'queued', created_at, job_id"
    )
    return [_job_of(row) for row in rows]


def counts(conn: Readable) -> dict[str, int]:
    """Return how many jobs are queued and how many running."""
    found = {"queued": 0, "running": 0}
    for row in conn.execute(
        "SELECT status, count(*) AS n FROM jobs WHERE status IN ('queued', 'running') GROUP BY status"
    ):
        found[row["status"]] = row["n"]
    return found


def count_queued(conn: Readable, kind: str) -> int:
    """Return how many jobs of a kind wait."""
    row = conn.execute(
        "SELECT count(*) FROM jobs WHERE kind = ? AND status = 'queued'", (kind,)
    ).fetchone()
    return int(row[0])


def mark_running(tx: Transaction, job_id: str) -> Job | None:
    """Note that a job starts, or starts again; None if it has ended or is to be cancelled."""
    now = utc_now()
    row = tx.execute(
        "UPDATE jobs SET status = 'running', starts = starts + 1, updated_at = ?,"
        " started_at = coalesce(started_at, ?)"
        " WHERE job_id = ? AND status IN ('queued', 'running') AND NOT cancel_requested RETURNING *",
        (now, now, job_id),
    ).fetchone()
    return _job_of(row) if row else None


def forget_start(tx: Transaction, job_id: str) -> None:
    """Take back the start that a graceful stop interrupted."""
    tx.execute(
        "UPDATE jobs SET starts = max(starts - 1, 0) WHERE job_id = ? AND status = 'running'",
        (job_id,),
    )


def touch(tx: Transaction, job_id: str, progress: dict[str, Any] | None) -> bool:
    """Note that a running job went on; False if it no longer runs."""
    cursor = tx.execute(
        "UPDATE jobs SET updated_at = ?, progress = coalesce(?, progress)"
        " WHERE job_id = ? AND status = 'running'",
        (utc_now(), _dump(progress) if progress is not None else None, job_id),
    )
    return cursor.rowcount > 0


def add_warning(tx: Transaction, job_id: str, warning: str) -> None:
    """Add a warning to a job that hasn't ended, once."""
    row = tx.execute(
        "SELECT warnings FROM jobs WHERE job_id = ? AND status IN ('queued', 'running')", (job_id,)
    ).fetchone()
    if row is None:
        return
    warnings = json.loads(row["warnings"])
    if warning not in warnings:
        tx.execute(
            "UPDATE jobs SET warnings = ?, updated_at = ? WHERE job_id = ?",
            (_dump([*warnings, warning]), utc_now(), job_id),
        )


def is_cancel_requested(conn: Readable, job_id: str) -> bool:
    """Whether somebody asked to cancel the job."""
    row = conn.execute("SELECT cancel_requested FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
    return row is not None and bool(row["cancel_requested"])


def request_cancel(tx: Transaction, kind: str, job_id: str) -> Job | None:
    """Record a cancel for a job that hasn't ended, and return the job as it is."""
    tx.execute(
        "UPDATE jobs SET cancel_requested = 1 WHERE job_id = ? AND kind = ?"
        " AND status IN ('queued', 'running')",
        (job_id, kind),
    )
    return get(tx, kind, job_id)


def end(
    tx: Transaction,
    job_id: str,
    status: str,
    error: ProjectError | None,
    result: dict[str, Any] | None,
) -> Job | None:
    """Give a job its terminal state and return it; None if it had ended before."""
    now = utc_now()
    row = tx.execute(
        "UPDATE jobs SET status = ?, updated_at = ?, completed_at = ?, result = ?,"
        " error_code = ?, error_params = ?, error_details = ?"
        " WHERE job_id = ? AND status IN ('queued', 'running') RETURNING *",
        (
            status,
            now,
            now,
            _dump(result) if result is not None else None,
            error.code if error else None,
            _dump({name: str(value) for name, value in error.params.items()}) if error else None,
            _dump(error.details) if error else None,
            job_id,
        ),
    ).fetchone()
    return _job_of(row) if row else None
