"""A server that plays an OpenAI-compatible one beside chat: embedding, transcription, speaker matching.

It speaks HTTP over a real socket, remembers what it was asked, and answers as a test tells it to.
"""

import asyncio
import contextlib
import json
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Fault = Literal["hang", "drop", "cut"]
"""``hang``: never answer. ``drop``: close without a word. ``cut``: stop in the middle of the body."""


@dataclass
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    def parts(self) -> dict[str, tuple[dict[str, str], bytes]]:
        """The parts of a form by name: what their disposition says, and their content."""
        kind, _, rest = self.headers["content-type"].partition(";")
        assert kind == "multipart/form-data", kind
        boundary = b"--" + rest.partition("boundary=")[2].strip('" ').encode()
        found = {}
        for piece in self.body.split(boundary)[1:-1]:
            head, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
            facts: dict[str, str] = {}
            for line in head.decode().split("\r\n"):
                title, _, value = line.partition(":")
                if title.lower() == "content-disposition":
                    for item in value.split(";")[1:]:
                        key, _, text = item.strip().partition("=")
                        facts[key] = text.strip('"')
                else:
                    facts[title.lower()] = value.strip()
            found[facts["name"]] = (facts, content.removesuffix(b"\r\n"))
        return found


@dataclass
class Answer:
    """What is answered: *body* as JSON, or as it is if it is bytes."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    fault: Fault | None = None


Script = Callable[[Asked], Answer]


def hash_vector(text: str, dimension: int) -> list[float]:
    """Return a vector that texts with the same words share."""
    vector = [0.0] * dimension
    vector[0] = 0.1
    for word in text.lower().split():
        vector[zlib.crc32(word.encode()) % dimension] += 3.0
    return vector


def embeddings(dimension: int = 16, *, usage: bool = True) -> Script:
    """Answer as an embedding model of *dimension* does, unless the request wants another one."""

    def script(asked: Asked) -> Answer:
        body = asked.json
        texts, wanted = body["input"], body.get("dimensions", dimension)
        answer: dict[str, Any] = {
            "object": "list",
            "model": body["model"],
            "data": [
                {"object": "embedding", "index": index, "embedding": hash_vector(text, wanted)}
                for index, text in enumerate(texts)
            ],
        }
        if usage:
            tokens = sum(len(text) for text in texts)
            answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        return Answer(answer)

    return script


@dataclass
class FakeModels:
    """A running server. *script* answers; *asked* are the requests; *hung_up* counts those that the client left."""

    url: str = ""
    script: Script = field(default_factory=embeddings)
    asked: list[Asked] = field(default_factory=list)
    hung_up: int = 0
    gate: asyncio.Event | None = None
    """While it is there and not set, answers wait."""
    came: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, body: Any = None, status: int = 200, **rest: Any) -> None:
        """Answer everything from now on like this."""
        self.script = lambda _: Answer(body, status, **rest)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(method, path, headers, body)
        self.asked.append(asked)
        self.came.set()
        if self.gate is not None:
            await self.gate.wait()
        answer = self.script(asked)
        if answer.fault == "hang":
            await reader.read(1)
            self.hung_up += 1
            self.left.set()
        if answer.fault in ("hang", "drop"):
            return False
        content = (
            answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        )
        lines = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **answer.headers,
        }
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{text}\r\n".encode())
        if answer.fault == "cut":
            writer.write(content[: len(content) // 2])
            await writer.drain()
            return False
        writer.write(content)
        await writer.drain()
        return True


@contextlib.asynccontextmanager
async def fake_models(script: Script | None = None) -> AsyncIterator[FakeModels]:
    """Serve until the block ends."""
    fake = FakeModels()
    if script is not None:
        fake.script = script
    open_ones: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones.add(task)
        try:
            await fake._serve(reader, writer)
        finally:
            open_ones.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield fake
    finally:
        server.close()
        for task in list(open_ones):
            task.cancel()
        if open_ones:
            await asyncio.wait(open_ones, timeout=5)
        await server.wait_closed()
