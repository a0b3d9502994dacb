"""The table of attempts."""

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from sidecar.kernel.database import Readable, Transaction
from sidecar.usage.schemas import UsageFilter

_SUMS: Final = """
    count(*) AS request_count,
    coalesce(sum(status = 'failed'), 0) AS failed_count,
    coalesce(sum(status = 'cancelled'), 0) AS cancelled_count,
    coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens,
    coalesce(sum(total_tokens), 0) AS total_tokens,
    coalesce(sum(coalesce(input_tokens, output_tokens, total_tokens) IS NOT NULL), 0)
        AS token_covered_requests,
    coalesce(sum(capability IN ('transcription', 'speaker_matching')), 0) AS audio_request_count,
    sum(audio_seconds) AS audio_seconds,
    count(audio_seconds) AS audio_covered_requests
"""


def insert(tx: Transaction, attempt: Mapping[str, Any]) -> None:
    """Write one attempt."""
    tx.execute(
        "INSERT INTO usage_attempts (source, capability, provider_id, provider_name, model,"
        " started_at, duration_ms, status, error_code, input_tokens, output_tokens, total_tokens,"
        " audio_seconds) VALUES (:source, :capability, :provider_id, :provider_name, :model,"
        " :started_at, :duration_ms, :status, :error_code, :input_tokens, :output_tokens,"
        " :total_tokens, :audio_seconds)",
        dict(attempt),
    )


def _where(wanted: UsageFilter) -> tuple[str, dict[str, Any]]:
    conditions = {
        "started_at >= :from": ("from", wanted.from_),
        "started_at < :to": ("to", wanted.to),
        "provider_id = :provider_id": ("provider_id", wanted.provider_id),
        "model = :model": ("model", wanted.model),
        "source = :source": ("source", wanted.source),
    }
    used = {sql: pair for sql, pair in conditions.items() if pair[1] is not None}
    return " AND ".join(used) or "TRUE", dict(used.values())


def sums(conn: Readable, wanted: UsageFilter, utc_offset_minutes: int) -> list[sqlite3.Row]:
    """Return the sums of each day, provider and model that has attempts, and the provider's latest name.

    One pass over the attempts; whoever wants larger sums adds these up.
    """
    where, parameters = _where(wanted)
    # Beside max(), SQLite takes a bare column from the row that holds the maximum.
    return conn.execute(
        "SELECT date(started_at, :offset) AS day, provider_id, provider_name, model,"  # noqa: S608
        f" max(attempt_no) AS last_attempt, {_SUMS} FROM usage_attempts WHERE {where}"
        " GROUP BY day, provider_id, model ORDER BY day",
        {**parameters, "offset": f"{utc_offset_minutes:+d} minutes"},
    ).fetchall()


def last_number(conn: Readable) -> int:
    """Return the number of the newest attempt, 0 if there is none."""
    found: int | None = conn.execute("SELECT max(attempt_no) FROM usage_attempts").fetchone()[0]
    return found or 0


def rows_between(
    conn: Readable, wanted: UsageFilter, after: int, until: int, limit: int
) -> list[sqlite3.Row]:
    """Return at most *limit* attempts with numbers above *after* and up to *until*, in order."""
    where, parameters = _where(wanted)
    return conn.execute(
        f"SELECT * FROM usage_attempts WHERE {where} AND attempt_no > :after"  # noqa: S608
        " AND attempt_no <= :until ORDER BY attempt_no LIMIT :limit",
        {**parameters, "after": after, "until": until, "limit": limit},
    ).fetchall()
