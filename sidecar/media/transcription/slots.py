"""Lets a few of many go ahead at once, strictly in the order in which they came."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """Places that each user shares with as many as it allows. For one event loop alone."""

    def __init__(self) -> None:
        self._taken = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def one_of(self, limit: int) -> AsyncIterator[None]:
        """Wait until fewer than *limit* are busy, and be one of them while the block runs."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((limit, turn))
        self._call_up()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._taken -= 1
            self._call_up()
            raise
        try:
            yield
        finally:
            self._taken -= 1
            self._call_up()

    def _call_up(self) -> None:
        while self._waiting:
            limit, turn = self._waiting[0]
            if not turn.cancelled():
                if self._taken >= limit:
                    return
                self._taken += 1
                turn.set_result(None)
            self._waiting.popleft()
