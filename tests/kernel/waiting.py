"""Bounded waits for what no event tells of."""

import asyncio
from collections.abc import AsyncIterable, Callable
from typing import Any

from sidecar.kernel.processes import process_exists


async def until(check: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until *check* holds; a TimeoutError if it doesn't in time."""
    async with asyncio.timeout(seconds):
        while not check():  # noqa: ASYNC110 - processes and threads tell nobody
            await asyncio.sleep(0.01)


async def gone(*pids: int) -> None:
    """Wait until none of the processes lives."""
    await until(lambda: not any(process_exists(pid) for pid in pids))


async def drain(messages: AsyncIterable[Any]) -> None:
    """Read an iteration to its end."""
    async for _ in messages:
        continue
