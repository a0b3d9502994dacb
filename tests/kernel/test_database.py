"""The database: what was acknowledged stays, and what failed leaves nothing."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.kernel import migrations
from sidecar.kernel.database import Database, DatabaseClosedError, Transaction
from sidecar.kernel.migrations import DatabaseNewerError, DatabaseUnreadableError, migrate
from sidecar.kernel.setting_store import get_setting, put_setting
from tests.app_client import ROOT


def _keys(conn: sqlite3.Connection) -> set[str]:
    return {row["key"] for row in conn.execute("SELECT key FROM settings")}


async def test_a_write_is_seen_by_the_next_read(database: Database) -> None:
    def write(tx: Transaction) -> str:
        put_setting(tx, "a", {"text": "听到"})
        return "done"

    assert await database.write(write) == "done"
    assert await database.read(lambda conn: get_setting(conn, "a")) == {"text": "听到"}
    await database.write(lambda tx: put_setting(tx, "a", None))
    assert await database.read(lambda conn: get_setting(conn, "a")) is None


async def test_a_failing_write_undoes_itself_alone(database: Database) -> None:
    called: list[str] = []

    def write(number: int) -> None:
        def run(tx: Transaction) -> None:
            put_setting(tx, f"key_{number}", number)
            tx.after_commit(lambda: called.append(f"key_{number}"))
            if number % 3 == 0:
                raise ValueError(number)

        futures.append(asyncio.wrap_future(database.submit(run)))

    futures: list[asyncio.Future[None]] = []
    # Submitted together, so that many of them share a commit.
    for number in range(60):
        write(number)
    results = await asyncio.gather(*futures, return_exceptions=True)
    kept = [f"key_{number}" for number in range(60) if number % 3]
    assert [isinstance(result, ValueError) for result in results] == [n % 3 == 0 for n in range(60)]
    assert await database.read(_keys) == set(kept)
    assert called == kept


@pytest.mark.parametrize("count", [0, 1, 63, 65, 256, 2049, 5000])
async def test_many_rows_are_inserted_as_they_are(database: Database, count: int) -> None:
    rows = [(f"key_{number}", f"值 '\0{number}" if number % 2 else "") for number in range(count)]

    def write(tx: Transaction) -> None:
        tx.insert_rows("settings", ("key", "value"), rows)

    await database.write(write)

    def read(conn: sqlite3.Connection) -> list[tuple[str, str]]:
        return [tuple(row) for row in conn.execute("SELECT key, value FROM settings")]

    assert sorted(await database.read(read)) == sorted(rows)
    if rows:
        with pytest.raises(sqlite3.IntegrityError):
            await database.write(
                lambda tx: tx.insert_rows("settings", ("key", "value"), [("new", ""), *rows])
            )
        assert "new" not in await database.read(_keys)


async def test_nothing_of_a_failed_commit_is_acknowledged(
    database: Database, tmp_path: Path
) -> None:
    await database.write(
        lambda tx: tx.execute(
            "CREATE TABLE child (parent TEXT REFERENCES settings (key)"
            " DEFERRABLE INITIALLY DEFERRED)"
        )
    )
    blocker = asyncio.wrap_future(database.submit(lambda tx: put_setting(tx, "before", 1)))
    together = [
        asyncio.wrap_future(database.submit(run))
        for run in (
            lambda tx: put_setting(tx, "innocent", 1),
            lambda tx: tx.execute("INSERT INTO child VALUES ('missing')"),
        )
    ]
    results = await asyncio.gather(blocker, *together, return_exceptions=True)
    assert isinstance(results[2], sqlite3.IntegrityError)
    keys = await database.read(_keys)
    # Each is there if and only if it was acknowledged.
    assert ("innocent" in keys) == (not isinstance(results[1], Exception))
    assert ("before" in keys) == (not isinstance(results[0], Exception))
    # The writer goes on.
    await database.write(lambda tx: put_setting(tx, "after", 1))
    assert "after" in await database.read(_keys)


async def test_a_caller_that_is_cancelled_does_not_undo_its_write(database: Database) -> None:
    task = asyncio.create_task(database.write(lambda tx: put_setting(tx, "kept", 1)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.write(lambda tx: put_setting(tx, "next", 1))
    assert await database.read(_keys) == {"kept", "next"}


async def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError):
        await database.read(lambda conn: conn.execute("DELETE FROM settings"))
    assert await database.read(_keys) == set()


async def test_a_read_sees_one_state_while_writes_go_on(database: Database) -> None:
    loop = asyncio.get_running_loop()

    def read(conn: sqlite3.Connection) -> tuple[set[str], set[str]]:
        before = _keys(conn)
        written = asyncio.run_coroutine_threadsafe(
            database.write(lambda tx: put_setting(tx, "during", 1)), loop
        )
        written.result(10)
        return before, _keys(conn)

    before, after = await database.read(read)
    assert before == after == set()
    assert await database.read(_keys) == {"during"}


async def test_close_finishes_what_is_queued_and_refuses_the_rest(
    database: Database, tmp_path: Path
) -> None:
    queued = [
        database.submit(lambda tx, n=n: put_setting(tx, f"key_{n}", n))  # type: ignore[misc]
        for n in range(500)
    ]
    await database.close()
    assert all(future.exception(0) is None for future in queued)
    with pytest.raises(DatabaseClosedError):
        await database.write(lambda tx: put_setting(tx, "late", 1))
    with pytest.raises(DatabaseClosedError):
        await database.read(_keys)
    wal = tmp_path / "app.db-wal"
    assert not wal.exists() or wal.stat().st_size == 0
    connection = sqlite3.connect(tmp_path / "app.db")
    assert connection.execute("SELECT count(*) FROM settings").fetchone() == (500,)
    connection.close()


@pytest.mark.parametrize("after", [1, 40, 400])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, after: int) -> None:
    path = tmp_path / "app.db"
    acknowledged: dict[str, int] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.kernel.appender", str(path)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout, start=1):
            if number == after:
                process.kill()
            if line.endswith("\n"):
                resource, sequence = line.split()
                acknowledged[resource] = int(sequence)
    assert sum(acknowledged.values()) >= after
    migrate(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for resource, last in acknowledged.items():
        kept = [
            row[0]
            for row in connection.execute(
                "SELECT sequence FROM events WHERE resource_id = ? ORDER BY sequence", (resource,)
            )
        ]
        assert kept == list(range(1, len(kept) + 1))
        # One more may be durable that nobody was told of; none of which somebody was told is missing.
        assert len(kept) >= last
    connection.close()


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.db"
    migrate(path)
    scripts = migrations.migration_scripts()
    latest = scripts[-1][0]
    broken = [*scripts, (latest + 1, "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);")]
    monkeypatch.setattr(migrations, "migration_scripts", lambda: broken)
    with pytest.raises(DatabaseUnreadableError):
        migrate(path)
    connection = sqlite3.connect(path)
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert "half" not in names
    assert connection.execute("PRAGMA user_version").fetchone() == (latest,)
    connection.close()


def test_a_migration_keeps_a_copy_of_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.db"
    migrate(path)
    assert [file.name for file in tmp_path.glob("*before*")] == []
    scripts = migrations.migration_scripts()
    following = scripts[-1][0] + 1
    more = [*scripts, (following, "CREATE TABLE added (x);")]
    monkeypatch.setattr(migrations, "migration_scripts", lambda: more)
    migrate(path)
    migrate(path)
    copies = list(tmp_path.glob("app.db.before-*"))
    assert len(copies) == 1
    for file, version in ((path, following), (copies[0], following - 1)):
        connection = sqlite3.connect(file)
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        connection.close()


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    migrate(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseNewerError):
        migrate(path)
    assert path.read_bytes() == before


def test_the_migrations_are_numbered_without_a_double() -> None:
    numbers = [number for number, _ in migrations.migration_scripts()]
    assert numbers == sorted(set(numbers))


async def test_a_full_disk_is_told_as_such(database: Database) -> None:
    """SQLite undoes a whole batch then; the reason must not be lost in the undoing."""
    await database.write(lambda tx: tx.execute("PRAGMA max_page_count = 1"))
    with pytest.raises(sqlite3.OperationalError) as failed:
        await database.write(lambda tx: put_setting(tx, "large", "x" * 1_000_000))
    assert failed.value.sqlite_errorcode == sqlite3.SQLITE_FULL
    await database.write(lambda tx: tx.execute("PRAGMA max_page_count = 1000000000"))
    await database.write(lambda tx: put_setting(tx, "small", "x"))
    assert await database.read(lambda conn: get_setting(conn, "large")) is None
    assert await database.read(lambda conn: get_setting(conn, "small")) == "x"
