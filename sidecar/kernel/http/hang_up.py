"""Work that nobody waits for any more is given up: the client has closed its request."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Protocol, TypeVar

from sidecar.kernel.errors import ProjectError

T = TypeVar("T")


class Listening(Protocol):
    """A request whose body has been read: what comes now is the client's leaving."""

    @property
    def receive(self) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
        """Wait for the next message of the connection."""
        ...


async def unless_hung_up(request: Listening, work: Coroutine[Any, Any, T]) -> T:
    """Do *work* and return its result; cancel it, and wait for its end, if the client leaves first.

    Then ``JOB_CANCELLED`` is raised, for an answer that nobody reads.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ProjectError("JOB_CANCELLED")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait({working, leaving})


async def _left(request: Listening) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
