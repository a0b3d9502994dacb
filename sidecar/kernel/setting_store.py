"""Settings that outlive a run, as JSON values under a key."""

import json
from typing import Any

from sidecar.kernel.database import Readable, Transaction


def get_setting(conn: Readable, key: str) -> Any:
    """Return the stored value, None if there is none."""
    row = conn.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
    return json.loads(row["value"]) if row else None


def put_setting(tx: Transaction, key: str, value: Any) -> None:
    """Store *value* under *key*; None removes it."""
    if value is None:
        tx.execute("DELETE FROM settings WHERE key = ?", (key,))
        return
    tx.execute(
        "INSERT INTO settings (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, json.dumps(value, ensure_ascii=False)),
    )
