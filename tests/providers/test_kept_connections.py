"""Connections that are kept: a server may end one just as the next request goes out on it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.providers.calls.transport import FilePart, Transport, Upstream

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class ClosingServer:
    """Answers the first *answered* requests of each connection and hangs up at the next one."""

    def __init__(self) -> None:
        self.answered = 1
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        for _ in range(self.answered):
            if not await self._take(reader):
                break
            writer.write(ANSWER)
            await writer.drain()
        else:
            await self._take(reader)
        writer.close()

    async def _take(self, reader: asyncio.StreamReader) -> bool:
        head = await reader.read(1)
        if not head:
            return False
        head += await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.requests.append(await reader.readexactly(length))
        return True


@pytest.fixture
async def closing() -> AsyncIterator[tuple[ClosingServer, Upstream]]:
    """Such a server, and where it is."""
    played = ClosingServer()
    server = await asyncio.start_server(played.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield played, Upstream(f"http://127.0.0.1:{port}")


async def test_a_request_that_met_a_closing_connection_goes_out_again(
    closing: tuple[ClosingServer, Upstream],
) -> None:
    played, upstream = closing
    transport = Transport()
    try:
        for number in range(3):
            assert await transport.post_json(upstream, "/x", {"number": number}) == {}
        file = {"file": FilePart("a.txt", b"content", "text/plain")}
        assert await transport.post_multipart(upstream, "/x", {"model": "m"}, file) == {}
    finally:
        await transport.close()
    # Each but the first was sent on the old connection, and then whole on a new one.
    assert [played.requests.count(b'{"number":%d}' % number) for number in range(3)] == [1, 2, 2]
    assert sum(b"content" in body for body in played.requests) == 2
    assert played.connections == 4


async def test_a_request_that_a_new_connection_took_is_sent_once(
    closing: tuple[ClosingServer, Upstream],
) -> None:
    played, upstream = closing
    played.answered = 0
    transport = Transport()
    try:
        with pytest.raises(ProjectError) as caught:
            await transport.post_json(upstream, "/x", {})
    finally:
        await transport.close()
    assert caught.value.code == "PROVIDER_UNAVAILABLE"
    assert len(played.requests) == played.connections == 1
