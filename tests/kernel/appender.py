"""Appends events for ever and prints the sequence of each once it is durable; made to be killed."""

import asyncio
import sys
from pathlib import Path

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.events import EventLog
from sidecar.kernel.migrations import migrate


async def append_for_ever(path: Path) -> None:
    """Append to ten resources at once."""
    migrate(path)
    database = Database(path)
    database.open()
    log = EventLog(database)

    async def one(resource: str) -> None:
        def append(tx: Transaction) -> int:
            return log.append(tx, resource, "Told", {"text": "x" * 200})

        while True:
            sequence = await database.write(append)
            print(f"{resource} {sequence}", flush=True)  # noqa: T201 - what it is for

    await asyncio.gather(*(one(f"resource_{number}") for number in range(10)))


if __name__ == "__main__":
    asyncio.run(append_for_ever(Path(sys.argv[1])))
