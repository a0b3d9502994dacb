"""Notes what local models were asked to do, and how it went: the newest 200 attempts."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sidecar.kernel.database import Database, Transaction
from sidecar.local_models import store
from sidecar.local_models.schemas import DiagnosticRecord, DiagnosticsResponse
from sidecar.local_models.store import Attempt

__all__ = ["Attempt", "AttemptLog", "ModelUse"]


class AttemptLog:
    """The attempts of the application, over its restarts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, tx: Transaction, attempt: Attempt) -> None:
        """Note an attempt in the transaction that ends it."""
        store.add_attempt(tx, attempt)

    def submit(self, attempt: Attempt) -> None:
        """Note an attempt soon, without waiting for that. From any thread."""
        self._database.submit(lambda tx: store.add_attempt(tx, attempt))

    async def page(self) -> DiagnosticsResponse:
        """Return the newest attempts, newest first."""
        rows = await self._database.read(store.attempts)
        return DiagnosticsResponse(
            scope="application_last_200_attempts",
            items=[DiagnosticRecord(id=row["attempt_id"], **_shown(dict(row))) for row in rows],
        )


def _shown(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in ("attempt_no", "attempt_id")}


class ModelUse:
    """Which model folders are at work right now. For the event loop's thread alone."""

    def __init__(self) -> None:
        self._users: Counter[Path] = Counter()

    @contextmanager
    def of(self, folder: Path) -> Iterator[None]:
        """Count *folder* as used while the block runs."""
        self._users[folder] += 1
        try:
            yield
        finally:
            self._users[folder] -= 1

    def folders(self) -> set[Path]:
        """Return the folders in use."""
        return set(+self._users)
