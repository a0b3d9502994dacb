"""A model server over a real socket, in a thread of its own, that answers and misbehaves on command."""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

WAIT_SECONDS = 20.0


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes; its arguments come in these pieces."""

    call_id: str
    name: str
    arguments: Sequence[str] = ("{}",)


@dataclass(frozen=True)
class Turn:
    """What a model answers, before a protocol gives it a form."""

    text: Sequence[str] = ()
    thinking: Sequence[str] = ()
    calls: Sequence[Call] = ()
    usage: tuple[int, int] | None = None
    finish: Literal["stop", "length", "tool_calls"] | None = None

    @property
    def why(self) -> str:
        """Why it ends."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass
class Answer:
    """One answer as it is sent.

    `pieces` are written one by one. Then `end` says what becomes of the connection: `close` ends the body properly,
    `eof` hangs up without its end, `reset` tears the connection down, `hold` says nothing more until the client hangs
    up. `before_head` holds the whole answer back.
    """

    status: int = 200
    pieces: Sequence[bytes] = ()
    content_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    end: Literal["close", "eof", "reset", "hold"] = "close"
    before_head: threading.Event | None = None
    no_head: bool = False

    @classmethod
    def of_json(cls, value: Any, status: int = 200, **headers: str) -> "Answer":
        """A JSON body."""
        return cls(status, [json.dumps(value, ensure_ascii=False).encode()], headers=headers)

    def split(self, at: int) -> "Answer":
        """The same answer, cut in two at a byte."""
        body = b"".join(self.pieces)
        return Answer(
            self.status, [body[:at], body[at:]], self.content_type, self.headers, self.end
        )


@dataclass
class Received:
    """A request that came. `closed` is set once its connection has ended."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    closed: threading.Event = field(default_factory=threading.Event)
    hung_up: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


class FakeUpstream:
    """A running server. `answers` are given in turn; `respond` decides where there is none left."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.answers: deque[Answer] = deque()
        self.respond: Callable[[Received], Answer] | None = None
        self.arrived = threading.Event()
        self._counted = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: Received) -> Answer:
        """Return the answer to a request."""
        if self.answers:
            return self.answers.popleft()
        if self.respond:
            return self.respond(request)
        return Answer.of_json({"error": {"message": "nothing prepared"}}, 404)

    def wait_for(self, count: int) -> bool:
        """Wait until that many requests came; to be called from a thread."""
        with self._counted:
            return self._counted.wait_for(lambda: len(self.received) >= count, WAIT_SECONDS)

    def reset(self) -> None:
        """Forget what came and what was prepared."""
        self.received.clear()
        self.answers.clear()
        self.respond = None
        self.arrived.clear()

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        """Serve until told to stop."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        seen: list[Received] = []
        try:
            while (request := await _request(reader)) is not None:
                seen.append(request)
                with self._counted:
                    self.received.append(request)
                    self._counted.notify_all()
                self.arrived.set()
                if not await self._answer(request, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            for request in seen:
                request.closed.set()
            with contextlib.suppress(ConnectionError):
                writer.close()
            self._tasks.discard(task)

    async def _answer(
        self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        answer = self.take(request)
        if answer.before_head is not None:
            await self._until(answer.before_head, reader, request)
        if not answer.no_head:
            writer.write(_head(answer))
        for piece in answer.pieces:
            if piece:
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
                # A piece of its own for the reader too, as far as a socket can give one.
                await asyncio.sleep(0)
        if answer.end == "close":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        if answer.end == "hold":
            await reader.read(1)
            request.hung_up.set()
        elif answer.end == "reset":
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False

    async def _until(
        self, event: threading.Event, reader: asyncio.StreamReader, request: Received
    ) -> None:
        gone = asyncio.ensure_future(reader.read(1))
        while not event.is_set() and not gone.done():
            await asyncio.wait([gone], timeout=0.01)
        if gone.done():
            request.hung_up.set()
            raise ConnectionError
        gone.cancel()


async def _request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Said", "Transfer-Encoding: chunked"]
    if answer.content_type:
        lines.append(f"Content-Type: {answer.content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in answer.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@contextlib.contextmanager
def fake_upstream() -> Iterator[FakeUpstream]:
    """Serve until the block ends."""
    upstream = FakeUpstream()
    ready, stop = threading.Event(), asyncio.Event()
    loop = upstream._loop
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(upstream.serve(ready, stop)), daemon=True
    )
    thread.start()
    assert ready.wait(WAIT_SECONDS)
    try:
        yield upstream
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT_SECONDS)
        loop.close()


def sse(*frames: Any, named: bool = False, done: bool = False) -> bytes:
    """Server-sent events of JSON objects; `named` puts each one's `type` before it."""
    parts = []
    for frame in frames:
        text = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
        name = f"event: {frame['type']}\n" if named and not isinstance(frame, str) else ""
        parts.append(f"{name}data: {text}\n\n")
    if done:
        parts.append("data: [DONE]\n\n")
    return "".join(parts).encode()
