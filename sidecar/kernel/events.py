"""The event log: what happened to a resource, in order, kept, and followed live.

An event is appended in the transaction of the change that it tells of, so neither can exist without
the other. Sequences rise by one within a resource. A subscriber first reads what is stored and then
follows live; both come from the same numbered sequence, so nothing is lost or doubled between the
two, however slowly it reads.
"""

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.kernel.catalogue import localise
from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database, Readable, Transaction

READ_BATCH: Final = 500
# Events of a followed resource that stay in memory, so that followers need not read the database.
RECENT_EVENTS: Final = 2048


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event. ``data`` may hold stored messages; :meth:`wire_data` puts them into words."""

    resource_id: str
    sequence: int
    event: str
    data: dict[str, Any]
    terminal: bool
    timestamp: str

    def wire_data(self) -> dict[str, Any]:
        """Return ``data`` with its messages in the current language."""
        worded: dict[str, Any] = localise(self.data)
        return worded


@dataclass(slots=True)
class _Channel:
    recent: deque[StoredEvent] = field(default_factory=lambda: deque(maxlen=RECENT_EVENTS))
    waiting: set[asyncio.Future[None]] = field(default_factory=set)
    followers: int = 0

    def wake(self) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_result(None)
        self.waiting.clear()


def _event_of(row: sqlite3.Row) -> StoredEvent:
    return StoredEvent(
        resource_id=row["resource_id"],
        sequence=row["sequence"],
        event=row["event"],
        data=json.loads(row["data"]),
        terminal=bool(row["terminal"]),
        timestamp=row["timestamp"],
    )


def last_sequence(connection: Readable, resource_id: str) -> int:
    """Return the sequence of the newest event of a resource, 0 if there is none."""
    row = connection.execute(
        "SELECT max(sequence) FROM events WHERE resource_id = ?", (resource_id,)
    ).fetchone()
    return int(row[0] or 0)


def read_events(
    connection: Readable, resource_id: str, after: int, limit: int
) -> list[StoredEvent]:
    """Return at most *limit* events of a resource after the sequence *after*, in order."""
    rows = connection.execute(
        "SELECT * FROM events WHERE resource_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        (resource_id, after, limit),
    )
    return [_event_of(row) for row in rows]


def _to_first_end(batch: list[StoredEvent]) -> list[StoredEvent]:
    """Return the events up to the first terminal one."""
    ends = (index for index, event in enumerate(batch, 1) if event.terminal)
    return batch[: next(ends, len(batch))]


class EventLog:
    """Appends events, and lets any number of subscribers follow a resource."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._channels: dict[str, _Channel] = {}
        self._closed = False

    def append(
        self,
        tx: Transaction,
        resource_id: str,
        event: str,
        data: dict[str, Any],
        *,
        terminal: bool = False,
    ) -> int:
        """Append an event in the caller's transaction and return its sequence."""
        sequence = last_sequence(tx, resource_id) + 1
        stored = StoredEvent(resource_id, sequence, event, data, terminal, utc_now())
        tx.execute(
            "INSERT INTO events (resource_id, sequence, event, data, terminal, timestamp)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                resource_id,
                sequence,
                event,
                json.dumps(data, ensure_ascii=False, separators=(",", ":")),
                terminal,
                stored.timestamp,
            ),
        )
        tx.after_commit(lambda: self._publish(stored))
        return sequence

    def _publish(self, stored: StoredEvent) -> None:
        channel = self._channels.get(stored.resource_id)
        if channel is not None:
            channel.recent.append(stored)
            channel.wake()

    async def last_sequence(self, resource_id: str) -> int:
        """Return the sequence of the newest event of a resource, 0 if there is none."""
        return await self._database.read(lambda conn: last_sequence(conn, resource_id))

    async def page(
        self, resource_id: str, after: int, limit: int
    ) -> tuple[list[StoredEvent], bool]:
        """Return at most *limit* events after *after*, and whether more exist."""
        found = await self._database.read(lambda c: read_events(c, resource_id, after, limit + 1))
        return found[:limit], len(found) > limit

    async def is_over(self, resource_id: str, sequence: int) -> bool:
        """Whether the event at *sequence* is a terminal one and the newest of its resource."""

        def check(conn: sqlite3.Connection) -> bool:
            row = conn.execute(
                "SELECT terminal, sequence FROM events WHERE resource_id = ?"
                " ORDER BY sequence DESC LIMIT 1",
                (resource_id,),
            ).fetchone()
            return row is not None and bool(row["terminal"]) and row["sequence"] == sequence

        return await self._database.read(check)

    async def subscribe(
        self,
        resource_id: str,
        after: int = 0,
        *,
        heartbeat: float | None = None,
        to_first_end: bool = False,
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """Yield the events after *after*, stored ones first, in lists; end after the terminal one.

        Of a resource that ran several times that is the newest terminal event, or with
        *to_first_end* the first one after *after*. With *heartbeat* an empty list is yielded
        whenever that many seconds passed with nothing to tell. The iteration also ends when the log
        is closed.
        """
        channel = self._channels.setdefault(resource_id, _Channel())
        channel.followers += 1
        cursor = after
        try:
            while True:
                batch = await self._next(channel, resource_id, cursor)
                if to_first_end:
                    batch = _to_first_end(batch)
                if batch:
                    cursor = batch[-1].sequence
                    yield batch
                    # A resource that can run again has earlier terminal events in its past.
                    if batch[-1].terminal and (
                        to_first_end or await self._is_newest(channel, resource_id, cursor)
                    ):
                        return
                elif self._closed:
                    return
                elif not await self._wait(channel, cursor, heartbeat):
                    yield []
        finally:
            channel.followers -= 1
            if not channel.followers:
                self._channels.pop(resource_id, None)

    async def _next(self, channel: _Channel, resource_id: str, cursor: int) -> list[StoredEvent]:
        recent = channel.recent
        if recent and recent[0].sequence <= cursor + 1:
            missing = recent[-1].sequence - cursor
            if missing <= 0:
                return []
            first = len(recent) - missing
            stop = min(len(recent), first + READ_BATCH)
            return [recent[index] for index in range(first, stop)]
        if self._closed:
            return []
        return await self._database.read(lambda c: read_events(c, resource_id, cursor, READ_BATCH))

    async def _is_newest(self, channel: _Channel, resource_id: str, cursor: int) -> bool:
        if channel.recent:
            return channel.recent[-1].sequence <= cursor
        return self._closed or await self.last_sequence(resource_id) <= cursor

    async def _wait(self, channel: _Channel, cursor: int, heartbeat: float | None) -> bool:
        """Wait for news; False if the time for a heartbeat came first."""
        if channel.recent and channel.recent[-1].sequence > cursor:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        channel.waiting.add(future)
        try:
            await asyncio.wait_for(future, heartbeat)
        except TimeoutError:
            return False
        finally:
            channel.waiting.discard(future)
        return True

    def close(self) -> None:
        """End every subscription once it has delivered what it holds; for the end of the program."""
        self._closed = True
        for channel in self._channels.values():
            channel.wake()
