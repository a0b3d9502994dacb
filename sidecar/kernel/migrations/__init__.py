"""Brings the database file to the schema of this version.

The schema is a sequence of ``NNNN_name.sql`` files beside this module; ``PRAGMA user_version`` of
the database says how many of them it has seen. Each file is one transaction.
"""

import sqlite3
from importlib import resources
from pathlib import Path

from sidecar.kernel.database import connect


class DatabaseNewerError(Exception):
    """The database was made by a newer version of the program."""


class DatabaseUnreadableError(Exception):
    """The file is damaged, or isn't a database."""


def migration_scripts() -> list[tuple[int, str]]:
    """Return (number, SQL) of every migration, in order."""
    scripts = [
        (int(entry.name.split("_", 1)[0]), entry.read_text(encoding="utf-8"))
        for entry in resources.files(__package__).iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(scripts)


def migrate(path: Path) -> None:
    """Create or update the database at *path*.

    A copy ``app.db.before-<n>`` is made first if there is something to lose. Raises
    :class:`DatabaseNewerError` (the file stays as it is) or :class:`DatabaseUnreadableError`.
    """
    scripts = migration_scripts()
    latest = scripts[-1][0]
    try:
        current = _stored_version(path)
        if current > latest:
            raise DatabaseNewerError
        if current < latest:
            _run(path, current, [script for script in scripts if script[0] > current])
    except sqlite3.DatabaseError as error:
        raise DatabaseUnreadableError from error


def _stored_version(path: Path) -> int:
    if not path.exists():
        return 0
    # Read only: opening a newer database must not change a byte of it.
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def _run(path: Path, current: int, scripts: list[tuple[int, str]]) -> None:
    connection = connect(path)
    try:
        if current > 0:
            _back_up(connection, path.with_name(f"{path.name}.before-{scripts[-1][0]:04d}"))
        for number, script in scripts:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\n;PRAGMA user_version = {number};\nCOMMIT;"
            )
    finally:
        connection.close()


def _back_up(connection: sqlite3.Connection, target: Path) -> None:
    copy = sqlite3.connect(target)
    try:
        connection.backup(copy)
    finally:
        copy.close()
