"""One recording of an hour of real speech: its memory, a kill in the middle, a client that comes back, a cancel.

    python -m tests.benchmarks.long_recording [--minutes 60] [--reconnections 10]

The server is killed some minutes into the recording, and the host starts it again, on the same data. One
client follows the job all the way: it drops its connection so many times and goes on behind the last event
it saw. Then the recording is begun once more and cancelled. Ends with 1 if an event was missed or came
twice, if there is more or less than one end, or if the segments are out of order.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from host_bridge.event_reader import ServerEvent
from host_bridge.launcher import Sidecar, launch
from host_bridge.restart import RestartPolicy
from tests.app_client import MODELS_DIR
from tests.media.client import ATTACHMENTS, TERMINAL, TRANSCRIPTIONS
from tests.media.samples import CALL, JFK, RATE, encoded, samples_of

KILLED_AT = 0.05
CANCELLED_AT = 0.02
# That of a voice recorder: an hour of it is a file of 14 MB, which an upload may have.
BIT_RATE = 32_000


class Memory:
    """The most memory that the server and its workers had, process by process."""

    def __init__(self) -> None:
        self.peak = {"server": 0, "worker": 0}

    @contextmanager
    def watched(self, sidecar: Sidecar) -> Iterator[None]:
        """Look ten times a second while the body runs."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(sidecar, over))
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(self, sidecar: Sidecar, over: threading.Event) -> None:
        while not over.wait(0.1):
            try:
                server = psutil.Process(sidecar.process.pid)
                found = [("server", server)]
                found += [("worker", child) for child in server.children(recursive=True)]
                for name, process in found:
                    self.peak[name] = max(self.peak[name], process.memory_info().rss)
            except psutil.NoSuchProcess:
                continue

    def __str__(self) -> str:
        return ", ".join(f"{name} {peak / 2**20:.0f} MiB" for name, peak in self.peak.items())


class Follower:
    """A client of one job's events that drops its connection and comes back behind the last one."""

    def __init__(self, sidecar: Sidecar, job_id: str, reconnections: int) -> None:
        self.seen: list[ServerEvent] = []
        self.dropped = 0
        self._sidecar = sidecar
        self._path = f"{TRANSCRIPTIONS}/{job_id}/events"
        self._reconnections = reconnections

    def follow(self) -> Iterator[ServerEvent]:
        """Yield the job's events to its end."""
        while not self.seen or self.seen[-1].event not in TERMINAL:
            after = int(self.seen[-1].id) if self.seen else None
            yield from self._connection(after)
            self.dropped += 1

    def _connection(self, after: int | None) -> Iterator[ServerEvent]:
        with closing(self._sidecar.events(self._path, after)) as events:
            for event in events:
                self.seen.append(event)
                yield event
                # Spread over the recording, not over the events of its first minute.
                if (
                    self.dropped < self._reconnections
                    and progress_of(event) > (self.dropped + 0.5) / self._reconnections
                ):
                    return

    def faults(self) -> list[str]:
        """Return what was missed, came twice or ended twice."""
        sequences = [int(event.id) for event in self.seen]
        found = []
        if sequences != list(range(sequences[0], sequences[0] + len(sequences))):
            found.append(f"the sequences have gaps or repeat: {sequences}")
        ends = [event.event for event in self.seen if event.event in TERMINAL]
        if len(ends) != 1:
            found.append(f"the job has these ends: {ends}")
        with closing(self._sidecar.events(self._path)) as events:
            if list(events) != self.seen:
                found.append("a second reader sees other events")
        return found


def progress_of(event: ServerEvent) -> float:
    """Return how much of the recording is done by an event, from 0 to 1; 0 if it doesn't say."""
    if event.event != "Progress":
        return 0.0
    told = json.loads(event.data)["data"]
    return float(told["percent"] or 0.0) / 100 if told["phase"] == "transcribing" else 0.0


def hour_of_speech(minutes: int) -> bytes:
    """Return a recording of real speech, repeated until it is so long."""
    piece = np.concatenate([samples_of(CALL), samples_of(JFK)])
    count = int(60 * minutes * RATE // len(piece)) + 1
    return encoded(np.tile(piece, count)[: 60 * minutes * RATE], "opus", bit_rate=BIT_RATE)


def started(sidecar: Sidecar, attachment_id: str) -> str:
    """Begin a transcription and return the job."""
    request = {"attachment_id": attachment_id, "language": "en"}
    return str(sidecar.post(TRANSCRIPTIONS, json=request).check(202).json()["job_id"])


def run_through(
    sidecar: Sidecar, attachment_id: str, minutes: int, reconnections: int
) -> list[str]:
    """Transcribe the recording with a kill on the way; print what was seen and return what was wrong."""
    memory, killed, last_told = Memory(), False, 0.0
    job_id = started(sidecar, attachment_id)
    follower = Follower(sidecar, job_id, reconnections)
    began = time.monotonic()
    phases = set()
    with memory.watched(sidecar):
        for event in follower.follow():
            done = progress_of(event)
            if event.event == "Progress":
                phases.add(json.loads(event.data)["data"]["phase"])
            if done >= last_told + 0.1:
                last_told = done
                print(f"  {done:.0%} after {time.monotonic() - began:.0f} s: {memory}", flush=True)
            if not killed and done >= KILLED_AT:
                killed, last_told = True, 0.0
                sidecar.process.kill()
                print(f"  killed at {done:.1%}", flush=True)
                began = time.monotonic()
    took = time.monotonic() - began
    job: dict[str, Any] = sidecar.get(f"{TRANSCRIPTIONS}/{job_id}").check(200).json()
    print(
        f"whole run  {minutes} minutes in {took:.0f} s ({took / (60 * minutes):.3f} of the recording's time),"
        f" {memory} at most; {len(follower.seen)} events, {len(job['segments'])} segments,"
        f" {follower.dropped} connections",
        flush=True,
    )
    faults = follower.faults()
    if "starting_over" not in phases:
        faults.append("nobody was told that the recording is begun anew")
    if not killed:
        faults.append("the server was never killed")
    starts = [segment["start_time"] for segment in job["segments"]]
    if job["status"] != "completed" or not starts or starts != sorted(set(starts)):
        faults.append(f"the job is {job['status']} with {len(starts)} segments")
    if starts and starts[-1] < 60 * (minutes - 1):
        faults.append(f"the last segment begins at {starts[-1]:.0f} s")
    return faults


def cancelled(sidecar: Sidecar, attachment_id: str) -> list[str]:
    """Begin the recording once more and cancel it on the way."""
    job_id = started(sidecar, attachment_id)
    follower = Follower(sidecar, job_id, 0)
    asked = 0.0
    for event in follower.follow():
        if not asked and progress_of(event) >= CANCELLED_AT:
            asked = time.monotonic()
            sidecar.post(f"{TRANSCRIPTIONS}/{job_id}/cancel", json={}).check(200, 202)
    print(
        f"cancel     {follower.seen[-1].event} {time.monotonic() - asked:.2f} s after it was asked for",
        flush=True,
    )
    faults = follower.faults()
    if follower.seen[-1].event != "Cancelled":
        faults.append(f"the cancelled job ended as {follower.seen[-1].event}")
    return faults


def main() -> int:
    """Run the benchmark; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=int, default=60, help="length of the recording")
    parser.add_argument(
        "--reconnections", type=int, default=10, help="connections that are dropped"
    )
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "vault").mkdir()
        recording = folder / "hour.opus"
        recording.write_bytes(hour_of_speech(arguments.minutes))
        sidecar = stack.enter_context(
            launch(
                data_dir=folder / "data",
                vault_path=folder / "vault",
                extra_args=("--models-dir", str(MODELS_DIR)),
                restart=RestartPolicy(),
            )
        )
        answer = sidecar.upload(ATTACHMENTS, recording).check(201)
        attachment_id = str(answer.json()["attachment_id"])
        faults = run_through(
            sidecar, attachment_id, arguments.minutes, arguments.reconnections
        ) + cancelled(sidecar, attachment_id)
    for fault in faults:
        print(f"WRONG: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
