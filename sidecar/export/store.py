"""The table of what is being exported."""

import json
from typing import Any

from sidecar.kernel.database import Readable, Transaction


def put_source(tx: Transaction, job_id: str, source: dict[str, Any]) -> None:
    """Keep the source of a job until it ends."""
    tx.execute(
        "INSERT INTO export_sources (job_id, source) VALUES (?, ?)",
        (job_id, json.dumps(source, ensure_ascii=False)),
    )


def get_source(conn: Readable, job_id: str) -> dict[str, Any] | None:
    """Return the source of a job that hasn't ended."""
    row = conn.execute("SELECT source FROM export_sources WHERE job_id = ?", (job_id,)).fetchone()
    source: dict[str, Any] | None = json.loads(row["source"]) if row else None
    return source


def forget_source(tx: Transaction, job_id: str) -> None:
    """Remove the source of a job."""
    tx.execute("DELETE FROM export_sources WHERE job_id = ?", (job_id,))
