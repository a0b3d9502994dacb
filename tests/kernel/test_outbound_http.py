import asyncio
import http.server
import threading
from collections.abc import Iterator

import pytest

from sidecar.kernel.outbound_http import OutboundHttp

BODY = bytes(4 << 20)


@pytest.fixture
def large_file() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


async def test_a_large_body_is_read_in_large_pieces(large_file: str) -> None:
    outbound = OutboundHttp()
    pieces = []
    async with outbound.stream(large_file) as exchange:
        # What has arrived meanwhile is there to be read at once.
        await asyncio.sleep(0.2)
        async for piece in exchange.response.aiter_raw():
            pieces.append(len(piece))
            await asyncio.sleep(0.001)
    await outbound.close()
    assert sum(pieces) == len(BODY)
    assert max(pieces) > 64 * 1024, pieces
