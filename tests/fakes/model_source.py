"""A server of files that misbehaves on command, over a real socket, as a hub or a mirror might."""

import contextlib
import hashlib
import http.server
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

BLOCK = 16 * 1024
RANGE = re.compile(r"bytes=(\d+)-")


@dataclass
class Served:
    """A file as it is served, and what is wrong with that.

    `status` answers with an error and a body nobody may see. `cut_after` closes the connection after so many bytes of
    each answer; `stall_after` falls silent there until the server ends. `length` is told instead of the true one.
    `gate` holds the body back after its first block. `change_to` is offered from the second request on.
    """

    content: bytes
    status: int | None = None
    cut_after: int | None = None
    short_to: int | None = None
    stall_after: int | None = None
    length: int | None = None
    gate: threading.Event | None = None
    change_to: bytes | None = None
    ranges: bool = True
    if_range: bool = True
    linked_hash: str | None = None
    location: str | None = None


@dataclass
class Asked:
    """A request that came."""

    path: str
    range: str | None
    authorization: str | None


@dataclass
class ModelSource:
    """A running server. `files` maps paths to what is served there; `asked` are the requests so far."""

    url: str = ""
    files: dict[str, Served] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    before_answer: Callable[[Asked], None] | None = None

    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [asked.path for asked in self.asked]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    source: ModelSource

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Serve a file, as it is told to."""
        source = self.source
        asked = Asked(self.path, self.headers.get("Range"), self.headers.get("Authorization"))
        source.asked.append(asked)
        if source.before_answer:
            source.before_answer(asked)
        served = source.files.get(self.path)
        if served is None or served.status:
            self._refuse(served.status if served and served.status else 404)
            return
        if served.location:
            self.send_response(302)
            self.send_header("Location", served.location)
            if served.linked_hash:
                self.send_header("X-Linked-ETag", f'"{served.linked_hash}"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._serve(served)
        if served.change_to is not None:
            served.content, served.change_to = served.change_to, None

    def _refuse(self, status: int) -> None:
        body = b"upstream secret words"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _serve(self, served: Served) -> None:
        content, start = served.content, 0
        etag = f'"{hashlib.md5(content).hexdigest()}"'
        wanted = RANGE.fullmatch(self.headers.get("Range", "")) if served.ranges else None
        condition = self.headers.get("If-Range")
        if wanted and (not served.if_range or condition in (None, etag)):
            start = int(wanted[1])
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[start : served.short_to]
        self.send_header("Content-Length", str(served.length or len(body)))
        self.send_header("ETag", etag)
        if served.linked_hash:
            self.send_header("X-Linked-ETag", f'"{served.linked_hash}"')
        self.end_headers()
        self._send(served, body)

    def _send(self, served: Served, body: bytes) -> None:
        for at in range(0, len(body), BLOCK):
            end = min(at + BLOCK, len(body))
            for limit in (served.cut_after, served.stall_after):
                if limit is not None:
                    end = min(end, limit)
            if end > at:
                self.wfile.write(body[at:end])
                self.source.sent += end - at
            if served.cut_after is not None and end >= served.cut_after:
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            if served.stall_after is not None and end >= served.stall_after:
                self.source.over.wait(60)
                self.close_connection = True
                return
            if served.gate is not None:
                served.gate.wait(60)
        if served.length and served.length > len(body):
            self.close_connection = True


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what the tests want."""


@contextlib.contextmanager
def model_source() -> Iterator[ModelSource]:
    """Serve until the block ends."""
    source = ModelSource()
    handler = type("Handler", (_Handler,), {"source": source})
    server = _Server(("127.0.0.1", 0), handler)
    source.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield source
    finally:
        source.over.set()
        for served in source.files.values():
            if served.gate is not None:
                served.gate.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
