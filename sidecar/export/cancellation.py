"""Work on another thread that ends soon after its caller is cancelled."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):
    """The work was told to stop."""


class StopSignal:
    """Tells a thread that nobody wants its result any more."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask the work to stop."""
        self._event.set()

    def check(self) -> None:
        """Raise :class:`Stopped` if the work is to stop; called at every step of it."""
        if self._event.is_set():
            raise Stopped


async def in_thread(stop: StopSignal, work: Callable[..., T], *arguments: Any) -> T:
    """Run *work* on another thread; a cancellation sets *stop* and waits until the thread has ended."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # Stopped, as a rule; nobody else will look at it.
        raise
