"""Figures of model streams beside a bare HTTP client in the same run; prints them and judges nothing.

    .venv/bin/python -m tests.benchmarks.providers [--json]

The provider is a process of its own that streams as fast as it is read. "Through" is the whole way of a
chat's answer: provider, adapter, ledger, server-sent events over a socket, client.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
from fastapi import FastAPI, Response

from sidecar.kernel.http.server import HttpServer, bind_loopback
from sidecar.kernel.http.sse import model_stream
from sidecar.providers.schemas.model_call import ChatTarget, Message, ModelRequest
from sidecar.providers.schemas.wire import ProviderCreateRequest
from sidecar.providers.service import ProviderService
from tests.app_client import running_app

REQUEST = ModelRequest((Message("user", "写长一点"),))
FIRST_TOKENS = 60
DELTAS = 20_000
CHATS = 20
PACED = "paced-150-50"


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds to the first token, deltas a second, and answers beside twenty chats."""

    first_token_bare_ms: float
    first_token_through_ms: float
    first_token_added_ms: float
    deltas_per_second_bare: float
    deltas_per_second_through: float
    ratio_of_bare: float
    chats: int
    deltas_per_second_of_chats: float
    other_answers: int
    other_answers_p50_ms: float
    other_answers_p95_ms: float


@contextlib.contextmanager
def upstream() -> Iterator[str]:
    """A provider in a process of its own."""
    command = [sys.executable, "-m", "tests.fakes.delta_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdin
        yield process.stdout.readline().strip()
        process.stdin.close()


@contextlib.asynccontextmanager
async def edge(service: ProviderService, provider_id: str) -> AsyncIterator[str]:
    """Streams answers as a chat does; the model is named in the address."""
    api = FastAPI()

    @api.get("/{model}")
    async def stream(model: str) -> Response:
        target = ChatTarget(provider_id, "benchmark", model, frozenset({"chat"}))
        return model_stream(service.stream(target, REQUEST))

    listener, ready = bind_loopback(0), asyncio.Event()
    server = HttpServer(api, ready.set)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await ready.wait()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    await serving


def bare(client: httpx.Client, url: str, model: str) -> tuple[float, float, int]:
    """Read a stream with nothing between; seconds to the first delta, to the end, and how many there were."""
    body = {"model": model, "messages": [{"role": "user", "content": "写长一点"}], "stream": True}
    return _follow(client, "POST", f"{url}/chat/completions", body)


def through(client: httpx.Client, url: str, model: str) -> tuple[float, float, int]:
    """Read a stream that comes through the sidecar."""
    return _follow(client, "GET", f"{url}/{model}", None)


def _follow(client: httpx.Client, method: str, url: str, body: object) -> tuple[float, float, int]:
    began, first, count = time.perf_counter(), 0.0, 0
    with client.stream(method, url, json=body) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                data = json.loads(line[6:])
                if "choices" in data or data.get("event") == "TextDelta":
                    count += 1
                    first = first or time.perf_counter() - began
    return first, time.perf_counter() - began, count


def other_answers(base_url: str, token: str, stop: threading.Event) -> list[float]:
    """Ask for the list of tasks again and again, over one connection; seconds of each answer."""
    connection = http.client.HTTPConnection(base_url.removeprefix("http://"))
    times = []
    while not stop.is_set():
        began = time.perf_counter()
        connection.request("GET", "/api/tasks", headers={"Authorization": f"Bearer {token}"})
        connection.getresponse().read()
        times.append(time.perf_counter() - began)
        stop.wait(0.02)
    return times


async def measure(folder: Path) -> Figures:
    """Take all figures."""
    # All chats at once, and the one who asks for something else beside them.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CHATS + 8))
    with upstream() as provider_url, httpx.Client(trust_env=False, timeout=120) as client:
        async with running_app(folder, open_vault=False, models_dirs=()) as app:
            service = app.services.providers
            provider = await service.create(
                ProviderCreateRequest(
                    name="benchmark", provider_type="openai_compatible", base_url=provider_url
                )
            )
            async with edge(service, provider.provider_id) as edge_url:
                firsts: dict[str, list[float]] = {"bare": [], "through": []}
                for _ in range(FIRST_TOKENS):
                    for name, follow, url in (
                        ("bare", bare, provider_url),
                        ("through", through, edge_url),
                    ):
                        first, _, _ = await asyncio.to_thread(follow, client, url, "fast-1")
                        firsts[name].append(first * 1000)
                _, bare_seconds, _ = await asyncio.to_thread(
                    bare, client, provider_url, f"fast-{DELTAS}"
                )
                _, seconds, count = await asyncio.to_thread(
                    through, client, edge_url, f"fast-{DELTAS}"
                )
                assert count == DELTAS
                stop = threading.Event()
                asking = asyncio.create_task(
                    asyncio.to_thread(other_answers, app.base_url, app.session_token, stop)
                )
                began = time.perf_counter()
                clients = [httpx.Client(trust_env=False, timeout=120) for _ in range(CHATS)]
                chats = await asyncio.gather(
                    *(asyncio.to_thread(through, one, edge_url, PACED) for one in clients)
                )
                chat_seconds = time.perf_counter() - began
                stop.set()
                others = sorted(1000 * seconds for seconds in await asking)
                for one in clients:
                    one.close()
    medians = {name: statistics.median(found) for name, found in firsts.items()}
    return Figures(
        first_token_bare_ms=round(medians["bare"], 2),
        first_token_through_ms=round(medians["through"], 2),
        first_token_added_ms=round(medians["through"] - medians["bare"], 2),
        deltas_per_second_bare=round(DELTAS / bare_seconds),
        deltas_per_second_through=round(DELTAS / seconds),
        ratio_of_bare=round(bare_seconds / seconds, 2),
        chats=CHATS,
        deltas_per_second_of_chats=round(sum(found[2] for found in chats) / chat_seconds),
        other_answers=len(others),
        other_answers_p50_ms=round(statistics.median(others), 2),
        other_answers_p95_ms=round(others[int(len(others) * 0.95)], 2),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asdict(asyncio.run(measure(Path(folder))))
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:32} {value}")


if __name__ == "__main__":
    main()
