"""Figures of the kernel and of the server at rest; prints them and judges nothing.

    .venv/bin/python -m tests.benchmarks.kernel [--executable dist/sidecar/sidecar] [--starts 10] [--json]

``--executable`` measures start, requests and memory of a frozen or installed sidecar; the events are
measured in this process in any case.
"""

import argparse
import asyncio
import http.client
import json
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from host_bridge.launcher import Sidecar, launch
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.events import EventLog
from sidecar.kernel.migrations import migrate

FOLLOWERS = 20
EVENTS = 20_000
WRITERS = 64
REQUESTS = 2_000
RESOURCE = "resource_benchmark"
BODY = {
    "phase": "transcribing",
    "current": 12.5,
    "total": 780.0,
    "text": "一二三四五六七八九十" * 3,
}


@dataclass(frozen=True, slots=True)
class EventFigures:
    """How fast single durable appends go while others follow, and whether anything got lost."""

    events: int
    followers: int
    appended_per_second: float
    delivered_per_second: float
    lost: int
    out_of_order: int


@dataclass(frozen=True, slots=True)
class StartFigures:
    """Seconds from exec to the ready line."""

    starts: int
    first: float
    median: float
    slowest: float


@dataclass(frozen=True, slots=True)
class RequestFigures:
    """Milliseconds of requests over one kept-alive connection, and of opening a new one each."""

    requests: int
    p50: float
    p95: float
    new_connection_p50: float


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """MiB of the server process that answers requests and does nothing else."""

    resident: float
    own: float


async def measure_events(folder: Path) -> EventFigures:
    """Append one event a write, as the product does, while twenty follow live."""
    migrate(folder / "app.db")
    database = Database(folder / "app.db")
    database.open()
    log = EventLog(database)
    following = asyncio.Semaphore(0)

    async def follow() -> list[int]:
        seen: list[int] = []
        following.release()
        async for batch in log.subscribe(RESOURCE):
            seen += [event.sequence for event in batch]
        return seen

    def append(tx: Transaction) -> int:
        # The last one is terminal, which ends the followers.
        sequence = log.append(tx, RESOURCE, "Progress", BODY)
        if sequence == EVENTS - 1:
            log.append(tx, RESOURCE, "Completed", {}, terminal=True)
        return sequence

    async def write(share: int) -> None:
        for _ in range(share):
            await database.write(append)

    followers = [asyncio.create_task(follow()) for _ in range(FOLLOWERS)]
    for _ in followers:
        await following.acquire()
    began = time.perf_counter()
    shares = [(EVENTS - 1) // WRITERS + (n < (EVENTS - 1) % WRITERS) for n in range(WRITERS)]
    await asyncio.gather(*(write(share) for share in shares))
    appended = time.perf_counter() - began
    seen = await asyncio.gather(*followers)
    delivered = time.perf_counter() - began
    await database.close()
    return EventFigures(
        events=EVENTS,
        followers=FOLLOWERS,
        appended_per_second=round(EVENTS / appended),
        delivered_per_second=round(EVENTS * FOLLOWERS / delivered),
        lost=sum(EVENTS - len(set(sequences)) for sequences in seen),
        out_of_order=sum(sequences != sorted(sequences) for sequences in seen),
    )


def measure_starts(command: Sequence[str] | None, folder: Path, starts: int) -> StartFigures:
    """Start and stop it again and again, on data that is there after the first time."""
    seconds = []
    for _ in range(starts):
        with launch(command, data_dir=folder / "data") as sidecar:
            seconds.append(sidecar.process.ready_seconds)
    return StartFigures(
        starts,
        round(seconds[0], 3),
        round(statistics.median(seconds[1:] or seconds), 3),
        round(max(seconds), 3),
    )


def _request(connection: http.client.HTTPConnection, sidecar: Sidecar) -> None:
    headers = {"Authorization": f"Bearer {sidecar.session_token}"}
    connection.request("GET", "/health", headers=headers)
    response = connection.getresponse()
    response.read()
    if response.status != http.client.OK:
        raise RuntimeError(f"the sidecar answered {response.status}")


def measure_requests(sidecar: Sidecar) -> RequestFigures:
    """Send requests to a cheap path, one after the other."""
    kept = http.client.HTTPConnection("127.0.0.1", sidecar.port, timeout=10)
    kept.connect()
    kept.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times, opened = [], []
    for number in range(REQUESTS + 50):
        began = time.perf_counter()
        _request(kept, sidecar)
        # The first ones warm up caches of both sides.
        if number >= 50:
            times.append(1000 * (time.perf_counter() - began))
    kept.close()
    for _ in range(REQUESTS // 10):
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", sidecar.port, timeout=10)
        _request(connection, sidecar)
        connection.close()
        opened.append(1000 * (time.perf_counter() - began))
    percentiles = statistics.quantiles(times, n=20)
    return RequestFigures(
        REQUESTS,
        round(percentiles[9], 2),
        round(percentiles[18], 2),
        round(statistics.median(opened), 2),
    )


def measure_memory(sidecar: Sidecar) -> MemoryFigures:
    """Read the memory of the serving process."""
    memory = psutil.Process(sidecar.pid).memory_full_info()
    return MemoryFigures(round(memory.rss / 2**20, 1), round(memory.uss / 2**20, 1))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the kernel and the server at rest.")
    parser.add_argument("--executable", help="a frozen or installed sidecar (default: this source)")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    command = [str(Path(options.executable).absolute())] if options.executable else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starts = measure_starts(command, folder, options.starts)
        with launch(command, data_dir=folder / "data") as sidecar:
            idle = measure_memory(sidecar)
            requests = measure_requests(sidecar)
            after = measure_memory(sidecar)
        events = asyncio.run(measure_events(folder))
    figures = {
        "exec to ready, seconds": asdict(starts),
        "memory at rest, MiB": asdict(idle),
        "memory after the requests, MiB": asdict(after),
        "keep-alive GET /health, milliseconds": asdict(requests),
        "durable events": asdict(events),
    }
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        for title, values in figures.items():
            print(title)
            for key, value in values.items():
                print(f"  {key.replace('_', ' '):24} {value:>12,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
