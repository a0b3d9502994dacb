"""The kernel's parts, on a database of the test's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.kernel.database import Database
from sidecar.kernel.events import EventLog
from sidecar.kernel.migrations import migrate


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """An open database of the present schema."""
    migrate(tmp_path / "app.db")
    opened = Database(tmp_path / "app.db")
    opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def events(database: Database) -> EventLog:
    """The event log of that database."""
    return EventLog(database)
