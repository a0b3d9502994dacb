"""Figures of a chat's way through the server; prints them and judges nothing.

    .venv/bin/python -m tests.benchmarks.chat [--executable dist/sidecar/sidecar] [--json]

A model server in a process of its own writes when it sent each piece into the piece itself. The same
reader takes its answers once directly, with nothing but httpx, and once through the sidecar; the clock
is the machine's own, so the difference is what the sidecar costs.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from host_bridge.launcher import Sidecar, launch

FIRST_TOKENS = 100
DELTAS = 20_000
CHATS = 20
PACE_SECONDS = 0.02
LOAD_SECONDS = 6.0
TEXT = " answer"


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from the moment in which the model server writes a piece until it is read."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures; ``direct`` is the bare reader, ``through`` the one behind the sidecar."""

    first_token_direct: Latency
    first_token_through: Latency
    deltas_per_second_direct: float
    deltas_per_second_through: float
    answers_at_rest: Latency
    answers_beside_paced_chats: Latency
    answers_beside_chats_at_full_speed: Latency
    deltas_per_second_of_all_chats: float


# -- the model server ----------------------------------------------------------------------------


def _piece(text: str) -> bytes:
    delta = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    frame = b"data: " + json.dumps(delta).encode() + b"\n\n"
    return f"{len(frame):x}\r\n".encode() + frame + b"\r\n"


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode()
_LAST = b"data: " + _END + b"\n\ndata: [DONE]\n\n"
_TAIL = f"{len(_LAST):x}\r\n".encode() + _LAST + b"\r\n0\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests; the question says how many pieces, how far apart: ``20000 0``."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            count, pause = body["messages"][-1]["content"].split()
            writer.write(_HEAD)
            for number in range(int(count)):
                if writer.is_closing():
                    return
                if float(pause):
                    await asyncio.sleep(float(pause))
                writer.write(_piece(f"{time.monotonic_ns()}{TEXT}"))
                if number % 20 == 0:
                    await writer.drain()
            writer.write(_TAIL)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve(told: Connection) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    told.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _model_server(told: Connection) -> None:
    asyncio.run(_serve(told))


# -- readers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reader asks."""

    client: httpx.AsyncClient
    url: str
    body: dict[str, Any]
    through: bool

    async def pieces(self, count: int, pause: float) -> AsyncIterator[int]:
        """Ask for pieces and yield how many nanoseconds each was on its way."""
        messages = [{"role": "user", "content": f"{count} {pause}"}]
        body = {**self.body, "messages": messages, "stream": True}
        async with self.client.stream("POST", self.url, json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                text = self._text(line)
                if text:
                    yield time.monotonic_ns() - int(text.removesuffix(TEXT))

    def _text(self, line: str) -> str | None:
        if not line.startswith("data: {"):
            return None
        data = json.loads(line[6:])
        if not self.through:
            return data["choices"][0]["delta"].get("content")
        if data["event"] == "Error":
            raise RuntimeError(data["data"]["code"])
        text: str | None = data["data"]["text"] if data["event"] == "TextDelta" else None
        return text


def _latency(milliseconds: Sequence[float]) -> Latency:
    ordered = sorted(milliseconds)
    return Latency(
        round(statistics.median(ordered), 2), round(ordered[int(len(ordered) * 0.95)], 2)
    )


async def first_tokens(place: Place) -> Latency:
    """Ask again and again, and take the first piece's time."""
    times = []
    for _ in range(FIRST_TOKENS):
        found = [waited async for waited in place.pieces(2, 0.005)]
        times.append(found[0] / 1e6)
    return _latency(times)


async def throughput(place: Place) -> float:
    """Read a long answer that is written as fast as it is taken."""
    started = time.perf_counter()
    count = 0
    async for _ in place.pieces(DELTAS, 0):
        count += 1
    assert count == DELTAS, f"{DELTAS - count} pieces are missing"
    return round(count / (time.perf_counter() - started))


async def answers(client: httpx.AsyncClient, seconds: float) -> Latency:
    """Ask for something small again and again, as a webview does."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        (await client.get("/api/notes", params={"limit": 20})).raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.01)
    return _latency(times)


async def beside_chats(
    place: Place, client: httpx.AsyncClient, pause: float
) -> tuple[Latency, float]:
    """Measure answers while many chats run; also how many pieces a second all of them pass on."""
    count = 0

    async def talk() -> None:
        nonlocal count
        while True:
            async for _ in place.pieces(2000, pause):
                count += 1

    talking = [asyncio.create_task(talk()) for _ in range(CHATS)]
    await asyncio.sleep(0.5)
    count = 0
    measured = await answers(client, LOAD_SECONDS)
    passed = count / LOAD_SECONDS
    for task in talking:
        task.cancel()
    await asyncio.gather(*talking, return_exceptions=True)
    return measured, round(passed)


# -- the run -------------------------------------------------------------------------------------


def _provider(sidecar: Sidecar, url: str) -> str:
    body = {
        "name": "Model server",
        "provider_type": "openai_compatible",
        "base_url": url,
        "capabilities": ["chat", "streaming"],
    }
    provider_id: str = sidecar.post("/api/providers", json=body).check().json()["provider_id"]
    return provider_id


@asynccontextmanager
async def _client(sidecar: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=sidecar.base_url,
        headers={"Authorization": f"Bearer {sidecar.session_token}"},
        timeout=60,
        trust_env=False,
        limits=httpx.Limits(max_connections=None),
    ) as client:
        yield client


async def measure(sidecar: Sidecar, port: int) -> Figures:
    """Run everything once."""
    url = f"http://127.0.0.1:{port}"
    provider_id = _provider(sidecar, url)
    async with (
        _client(sidecar) as client,
        _client(sidecar) as other,
        httpx.AsyncClient(timeout=60, trust_env=False) as bare,
    ):
        direct = Place(bare, f"{url}/chat/completions", {"model": "m"}, through=False)
        through = Place(
            client, "/api/chat", {"model": "m", "provider_id": provider_id}, through=True
        )
        for place in (direct, through):
            await first_tokens(place)
        at_rest = await answers(other, 2.0)
        paced, _ = await beside_chats(through, other, PACE_SECONDS)
        full, passed = await beside_chats(through, other, 0)
        return Figures(
            await first_tokens(direct),
            await first_tokens(through),
            await throughput(direct),
            await throughput(through),
            at_rest,
            paced,
            full,
            passed,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--executable", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_model_server, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    command = [str(arguments.executable)] if arguments.executable else None
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder, "vault")
        vault.mkdir()
        with launch(command, data_dir=Path(folder, "data"), vault_path=vault) as sidecar:
            for number in range(50):
                note = {"title": f"Note {number}", "content": "word " * 50}
                sidecar.post("/api/notes", json=note).check()
            figures = asyncio.run(measure(sidecar, port))
    server.terminate()
    if arguments.json:
        print(json.dumps(asdict(figures), indent=2))
        return
    for name, value in asdict(figures).items():
        shown = (
            value
            if isinstance(value, float | int)
            else f"p50 {value['p50']}  p95 {value['p95']} ms"
        )
        print(f"{name.replace('_', ' '):40} {shown}")


if __name__ == "__main__":
    main()
