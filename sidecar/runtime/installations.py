"""The events of installations, all of them in one resource that goes on from one to the next."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from sidecar.kernel.catalogue import Localised
from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog

RESOURCE: Final = "runtime-component-cuda"
TERMINAL: Final = ("Completed", "Failed")


class Installations:
    """Appends and reads the events of installations."""

    def __init__(self, database: Database, events: EventLog) -> None:
        self._database = database
        self.log = events

    async def begin(self) -> None:
        """Tell that an installation was asked for."""
        await self._append("Queued", {"status": "queued"})

    async def stage(self, stage: str) -> None:
        """Tell a stage. Nobody knows how long one takes, so none has a percentage."""
        progress = {
            "phase": stage,
            "current": 0,
            "total": 0,
            "percent": None,
            "message": Localised(f"phase.{stage}").to_json(),
            "stage": stage,
        }
        await self._append("Progress", progress)

    async def complete(self) -> None:
        """Tell that the runtime is installed."""
        await self._append("Completed", {"status": "completed"}, terminal=True)

    async def fail(self, error: ProjectError) -> None:
        """Tell why it isn't."""
        body = {
            "code": error.code,
            "message": error.localised().to_json(),
            "details": error.details,
        }
        await self._append("Failed", {"status": "failed", "error": body}, terminal=True)

    async def _append(self, event: str, data: dict[str, Any], *, terminal: bool = False) -> None:
        def change(tx: Transaction) -> None:
            self.log.append(tx, RESOURCE, event, data, terminal=terminal)

        await self._database.write(change)

    async def unfinished_since(self) -> str | None:
        """Return when the installation began that an earlier process left without an end."""

        def read(conn: sqlite3.Connection) -> str | None:
            last = _newest(conn, ("Queued", *TERMINAL))
            return last["timestamp"] if last is not None and last["event"] == "Queued" else None

        return await self._database.read(read)

    async def before_latest(self) -> int:
        """Return the sequence after which the latest installation's events follow."""

        def read(conn: sqlite3.Connection) -> int:
            latest = _newest(conn, ("Queued",))
            return int(latest["sequence"]) - 1 if latest is not None else 0

        return await self._database.read(read)


def _newest(conn: Readable, names: Sequence[str]) -> sqlite3.Row | None:
    """Return the newest event with one of these names, three at most."""
    row: sqlite3.Row | None = conn.execute(
        "SELECT sequence, event, timestamp FROM events WHERE resource_id = ?"
        " AND event IN (?, ?, ?) ORDER BY sequence DESC LIMIT 1",
        (RESOURCE, *names, *("",) * (3 - len(names))),
    ).fetchone()
    return row
