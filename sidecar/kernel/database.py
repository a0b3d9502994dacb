"""The one SQLite file: a writer thread with group commit, and readers that it never blocks.

All writes go through one connection on one thread. Writes that wait while a commit is under way are
run together in the next transaction, each in its own savepoint, and share its fsync: a caller is
answered only after the commit that holds its write. Readers have connections of their own and see
the last committed state (WAL).
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sidecar.kernel.logging import get_logger

log = get_logger(__name__)

T = TypeVar("T")
Parameters = Sequence[Any] | dict[str, Any]

# Writes that one commit may carry. More would make the first of them wait for the last.
GROUP_LIMIT = 256
READERS = 3
BUSY_TIMEOUT_SECONDS = 10.0
_ROWS_A_STATEMENT = (2048, 256)
# What SQLite takes unless it is built for more.
_MOST_PARAMETERS = 32_766


class DatabaseClosedError(Exception):
    """The database was closed while the program stops."""


class Readable(Protocol):
    """What a store needs for a query: a connection, or a transaction."""

    def execute(self, sql: str, parameters: Parameters = ..., /) -> sqlite3.Cursor:
        """Run one statement and return its cursor."""
        ...


@dataclass(slots=True)
class Transaction:
    """A write in progress. Nobody but the database commits it."""

    connection: sqlite3.Connection
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def execute(self, sql: str, parameters: Parameters = (), /) -> sqlite3.Cursor:
        """Run one statement and return its cursor."""
        return self.connection.execute(sql, parameters)

    def executemany(self, sql: str, rows: Iterable[Parameters], /) -> sqlite3.Cursor:
        """Run one statement once for each of *rows*."""
        return self.connection.executemany(sql, rows)

    def insert_rows(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Insert *rows* into *table*; the first column of a row must not be None.

        Many rows go in with one statement, which runs to its end beside other threads of Python: a
        statement for each row would wait at each of them for a thread that is computing.
        """
        start = 0
        for size in _ROWS_A_STATEMENT:
            if size * len(columns) > _MOST_PARAMETERS:
                continue
            while len(rows) - start > size // 4:
                self._insert_padded(table, columns, rows[start : start + size], size)
                start += size
        self.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_marks(columns)})",  # noqa: S608
            rows[start:],
        )

    def _insert_padded(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], size: int
    ) -> None:
        # Always of the same length, so that the prepared statement can be kept; the rows that are
        # left over are empty.
        values = ", ".join([f"({_marks(columns)})"] * size)
        given = list(chain.from_iterable(rows))
        given += [None] * (size * len(columns) - len(given))
        self.execute(
            f"INSERT INTO {table} ({', '.join(columns)})"  # noqa: S608 - names of the caller
            f" SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL",
            given,
        )

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call *callback* on the event loop once this write is durable, in the order of commits.

        It isn't called if the write is rolled back.
        """
        self.callbacks.append(callback)


def _marks(columns: Sequence[str]) -> str:
    return ", ".join("?" * len(columns))


@dataclass(slots=True)
class _Write:
    run: Callable[[Transaction], Any]
    future: Future[Any]


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open *path* with the settings that every connection of the program uses."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    # FULL: what was acknowledged is still there after a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    else:
        connection.execute("PRAGMA journal_mode = WAL")
        # 16 MB, filled as it is needed: indexing a vault comes back to the same pages all the time.
        connection.execute("PRAGMA cache_size = -16000")
    return connection


class Database:
    """Access to one SQLite file; open it inside a running event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._writer: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._read_connections: list[sqlite3.Connection] = []

    def open(self) -> None:
        """Start the writer and the readers. The file must be migrated already."""
        self._loop = asyncio.get_running_loop()
        connection = connect(self._path)
        self._writer = threading.Thread(
            target=self._write_loop, args=(connection,), name="database-writer", daemon=True
        )
        self._writer.start()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="database-reader")

    async def write(self, run: Callable[[Transaction], T]) -> T:
        """Run *run* on the writer thread and return its result once it is durable.

        An exception of *run* undoes what it did, and nothing else, and is raised here. A caller
        that is cancelled while it waits doesn't undo the write.
        """
        return await asyncio.shield(asyncio.wrap_future(self.submit(run)))

    def submit(self, run: Callable[[Transaction], T]) -> Future[T]:
        """Queue a write from any thread; the future is done when it is durable."""
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                future.set_exception(DatabaseClosedError())
            else:
                self._queue.put(_Write(run, future))
        return future

    async def read(self, run: Callable[[sqlite3.Connection], T]) -> T:
        """Run *run* with a read-only connection, on a reader thread, in one consistent snapshot."""
        if self._closed or self._readers is None:
            raise DatabaseClosedError
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, run)

    def _read(self, run: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._path, read_only=True)
            self._local.connection = connection
            with self._gate:
                self._read_connections.append(connection)
        connection.execute("BEGIN")
        try:
            return run(connection)
        finally:
            connection.execute("ROLLBACK")

    def _write_loop(self, connection: sqlite3.Connection) -> None:
        stopping = False
        while not stopping:
            batch: list[_Write] = []
            item = self._queue.get()
            while item is not None:
                batch.append(item)
                if len(batch) >= GROUP_LIMIT:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            stopping = item is None
            if batch:
                self._commit(connection, batch)
        # Leaves no write-ahead log with content behind.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def _commit(self, connection: sqlite3.Connection, batch: list[_Write]) -> None:
        done: list[tuple[_Write, Any]] = []
        callbacks: list[Callable[[], None]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for write in batch:
                if write.future.set_running_or_notify_cancel():
                    _run_in_savepoint(connection, write, done, callbacks)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail(connection, batch, error)
            return
        if callbacks:
            self._call_on_loop(callbacks)
        for write, result in done:
            write.future.set_result(result)

    def _fail(
        self, connection: sqlite3.Connection, batch: list[_Write], error: sqlite3.Error
    ) -> None:
        log.error("database.commit_failed", extra={"reason": str(error)})
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        for write in batch:
            if not write.future.done():
                write.future.set_exception(error)

    def _call_on_loop(self, callbacks: list[Callable[[], None]]) -> None:
        def run_all() -> None:
            for callback in callbacks:
                try:
                    callback()
                except Exception:
                    # What one write has to tell must not be lost because another's failed.
                    log.exception("database.callback_failed")

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(run_all)

    async def close(self) -> None:
        """Finish the writes that are queued, then close every connection."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        if self._readers is not None:
            await asyncio.to_thread(self._readers.shutdown, wait=True)
        for connection in self._read_connections:
            connection.close()
        if self._writer is not None:
            await asyncio.to_thread(self._writer.join)


def _run_in_savepoint(
    connection: sqlite3.Connection,
    write: _Write,
    done: list[tuple[_Write, Any]],
    callbacks: list[Callable[[], None]],
) -> None:
    """Run one write of a batch; if it fails, only what it did is undone."""
    transaction = Transaction(connection)
    connection.execute("SAVEPOINT one_write")
    try:
        result = write.run(transaction)
    except Exception as error:
        if isinstance(error, sqlite3.Error) and not connection.in_transaction:
            # SQLite has undone the whole batch, as for a full disk: all of it failed for that reason.
            raise
        connection.execute("ROLLBACK TO one_write")
        connection.execute("RELEASE one_write")
        write.future.set_exception(error)
    else:
        connection.execute("RELEASE one_write")
        done.append((write, result))
        callbacks.extend(transaction.callbacks)
