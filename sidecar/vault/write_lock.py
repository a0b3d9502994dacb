"""One writer at a time, and never half of a write."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class WriteLock:
    """Runs one piece of work at a time to its end, also if whoever asked for it goes away."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run *work* once it is its turn. A caller that is cancelled doesn't stop it."""

        async def locked() -> T:
            async with self._lock:
                return await work()

        task = asyncio.ensure_future(locked())
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Whoever waited has got the exception; nobody else needs to hear of it.
            task.exception()

    async def finish(self) -> None:
        """Wait until no work is left."""
        while self._running:
            await asyncio.wait(set(self._running))
