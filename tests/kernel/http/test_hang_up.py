"""Work for a request ends with the request."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.http.hang_up import unless_hung_up


class Connection:
    """A client that stays until it is told to leave."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    @property
    def receive(self) -> Callable[[], Awaitable[dict[str, Any]]]:
        return self.messages.get


async def test_a_result_and_an_error_come_through() -> None:
    async def works() -> int:
        return 7

    async def fails() -> int:
        raise ProjectError("VAULT_NOT_OPEN")

    assert await unless_hung_up(Connection(), works()) == 7
    with pytest.raises(ProjectError, match="VAULT_NOT_OPEN"):
        await unless_hung_up(Connection(), fails())
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("how", ["client", "caller"])
async def test_the_work_is_over_before_it_is_left(how: str) -> None:
    connection, begun, tidied = Connection(), asyncio.Event(), asyncio.Event()

    async def works() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.set()

    waiting = asyncio.create_task(unless_hung_up(connection, works()))
    await asyncio.wait_for(begun.wait(), 5)
    if how == "client":
        # What is left of a body says nothing about the client.
        connection.messages.put_nowait({"type": "http.request", "body": b""})
        connection.messages.put_nowait({"type": "http.disconnect"})
        with pytest.raises(ProjectError, match="JOB_CANCELLED"):
            await asyncio.wait_for(waiting, 5)
    else:
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, 5)
    assert tidied.is_set()
    assert len(asyncio.all_tasks()) == 1
