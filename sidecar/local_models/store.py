"""The tables of local models."""

import sqlite3
from dataclasses import dataclass
from typing import Final, Literal

from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.ids import new_id

ATTEMPTS_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class ModelJob:
    """A model's newest job of its kind. ``beginning`` is the sequence before its first event."""

    model_id: str
    kind: str
    job_id: str
    beginning: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a local model, or one fallback; what isn't known is None. Times in milliseconds.

    Holds no text, file name or path. ``actual_device`` is None for work that didn't really begin.
    """

    kind: Literal["call", "fallback"]
    purpose: str
    status: str
    model_id: str | None = None
    requested_device: str | None = None
    actual_device: str | None = None
    load_ms: int | None = None
    duration_ms: int | None = None
    error_code: str | None = None
    fallback_reason: str | None = None


def put_job(tx: Transaction, job: ModelJob) -> None:
    """Store the newest job of its kind of its model."""
    tx.execute(
        "INSERT OR REPLACE INTO model_jobs (model_id, kind, job_id, beginning) VALUES (?, ?, ?, ?)",
        (job.model_id, job.kind, job.job_id, job.beginning),
    )


def newest_job(conn: Readable, model_id: str) -> ModelJob | None:
    """Return a model's newest job of whatever kind."""
    row = conn.execute(
        "SELECT * FROM model_jobs WHERE model_id = ? ORDER BY beginning DESC LIMIT 1", (model_id,)
    ).fetchone()
    return ModelJob(**row) if row else None


def jobs(conn: Readable) -> list[ModelJob]:
    """Return the newest job of each kind of every model that had one, oldest first."""
    return [ModelJob(**row) for row in conn.execute("SELECT * FROM model_jobs ORDER BY beginning")]


def add_attempt(tx: Transaction, attempt: Attempt) -> None:
    """Store an attempt and forget those that are too old."""
    tx.execute(
        "INSERT INTO model_attempts (attempt_id, created_at, kind, purpose, model_id,"
        " requested_device, actual_device, status, load_ms, duration_ms, error_code,"
        " fallback_reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new_id("attempt"),
            utc_now(),
            attempt.kind,
            attempt.purpose,
            attempt.model_id,
            attempt.requested_device,
            attempt.actual_device,
            attempt.status,
            attempt.load_ms,
            attempt.duration_ms,
            attempt.error_code,
            attempt.fallback_reason,
        ),
    )
    tx.execute(
        "DELETE FROM model_attempts WHERE attempt_no <="
        " (SELECT max(attempt_no) FROM model_attempts) - ?",
        (ATTEMPTS_KEPT,),
    )


def attempts(conn: Readable) -> list[sqlite3.Row]:
    """Return the stored attempts, newest first."""
    return conn.execute(
        "SELECT * FROM model_attempts ORDER BY attempt_no DESC LIMIT ?", (ATTEMPTS_KEPT,)
    ).fetchall()
