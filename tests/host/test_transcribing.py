"""Stopping, and being quiet, while a real transcription runs."""

import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from host_bridge.protocol import SHUTDOWN_LIMIT_SECONDS
from tests.app_client import ROOT
from tests.host.conftest import Start
from tests.host.serving import MODEL_ARGUMENTS, Serving, eventually, is_alive, request_bytes

LECTURE = ROOT / "sidecar" / "demo" / "recordings" / "zh-lecture.flac"
TERMINAL = ("Completed", "Failed", "Cancelled")


@pytest.fixture
def transcriber(start: Start, tmp_path: Path) -> Serving:
    """A sidecar with a vault, a model and the log's last detail."""
    (tmp_path / "vault").mkdir()
    settings = {"vault_path": str(tmp_path / "vault"), "log_level": "debug"}
    return start(settings=settings, arguments=MODEL_ARGUMENTS)


def _begin(sidecar: Serving) -> str:
    """Upload a lecture, have it transcribed, and return the job once its worker computes."""
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.flac"\r\n'
        b"Content-Type: audio/flac\r\n\r\n" + LECTURE.read_bytes() + b"\r\n--b--\r\n"
    )
    uploaded = sidecar.request(
        "POST",
        "/api/media/attachments",
        token=sidecar.tokens.session,
        headers=[("Content-Type", "multipart/form-data; boundary=b")],
        body=body,
    )
    assert uploaded.status == 201, uploaded.body
    request = {"attachment_id": uploaded.json()["attachment_id"], "language": "zh"}
    created = sidecar.post("/api/media/transcriptions", request)
    assert created.status == 202, created.body
    job_id: str = created.json()["job_id"]
    eventually(lambda: _phase(sidecar, job_id) == "transcribing", "it transcribes", 60.0)
    return job_id


def _job(sidecar: Serving, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = sidecar.get(f"/api/media/transcriptions/{job_id}").json()
    return job


def _phase(sidecar: Serving, job_id: str) -> str | None:
    job = _job(sidecar, job_id)
    assert job["status"] in ("queued", "running"), job
    progress = job["progress"]
    return progress and progress["phase"]


def _follow(
    sidecar: Serving, job_id: str, *credentials: tuple[str, str]
) -> tuple[socket.socket, bytes]:
    """Open a stream, and return it with what came of it until the job told of its progress."""
    path = f"/api/media/transcriptions/{job_id}/events"
    connection = socket.create_connection(("127.0.0.1", sidecar.port), timeout=60)
    connection.sendall(request_bytes("GET", path, sidecar.headers(more=credentials), close=False))
    received = b""
    while b"event: Progress\n" not in received:
        chunk = connection.recv(65536)
        assert chunk, received
        received += chunk
    return connection, received


def _read_to_end(connection: socket.socket, received: bytes) -> bytes:
    while chunk := connection.recv(65536):
        received += chunk
    return received


@pytest.mark.proves(
    "host.stop.time-limit",
    "host.stop.children-ended",
    "host.stop.resource-streams-close",
    "host.stop.jobs-recoverable",
    "host.stop.exit-zero",
    "host.stdout.nothing-else",
    "host.cookie.opens-api",
    "host.auth.streams",
    "host.start.no-secret-in-argv",
    "host.start.no-secret-in-environment",
    "host.paths.status",
)
def test_a_stop_while_it_transcribes(transcriber: Serving, start: Start) -> None:
    job_id = _begin(transcriber)
    refused = transcriber.request("GET", f"/api/media/transcriptions/{job_id}/events")
    assert (refused.status, refused.code) == (401, "SESSION_INVALID")
    bearer = ("Authorization", f"Bearer {transcriber.tokens.session}")
    streams = [_follow(transcriber, job_id, own) for own in (bearer, transcriber.cookie())]
    workers = transcriber.descendants()
    assert workers
    _assert_no_secret(transcriber, workers)
    listed = transcriber.host_get("/host/status").json()["processes"]
    assert {child["pid"] for child in listed} <= {worker.pid for worker in workers}
    assert "worker:speech" in {child["kind"] for child in listed}
    try:
        transcriber.write(b'{"type":"shutdown"}\n')
        received = [_read_to_end(stream, so_far) for stream, so_far in streams]
    finally:
        for stream, _ in streams:
            stream.close()
    assert transcriber.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    assert not any(is_alive(worker.pid) for worker in workers)
    for raw in received:
        assert b"200 OK" in raw
        assert raw.endswith(b"\n\n\r\n0\r\n\r\n")
        assert not any(f"event: {name}\n".encode() in raw for name in TERMINAL)
        assert b"event: Progress\n" in raw
    assert transcriber.stdout().count(b"\n") == 1
    # The next start takes the job up again.
    again = start(
        settings={"vault_path": str(transcriber.folder / "vault")}, arguments=MODEL_ARGUMENTS
    )
    eventually(lambda: _job(again, job_id)["status"] == "running", "the job runs again", 60.0)
    cancelled = again.post(f"/api/media/transcriptions/{job_id}/cancel")
    assert cancelled.status == 202
    eventually(lambda: _job(again, job_id)["status"] == "cancelled", "the job is cancelled")


def _assert_no_secret(sidecar: Serving, workers: list[psutil.Process]) -> None:
    for worker in workers:
        seen = [*worker.cmdline(), *worker.environ().values()]
        for secret in (sidecar.tokens.session, sidecar.tokens.host):
            assert not any(secret in text for text in seen)


@pytest.mark.proves("host.stop.jobs-recoverable")
def test_a_killed_sidecar_leaves_no_worker_and_no_lost_job(
    transcriber: Serving, start: Start
) -> None:
    job_id = _begin(transcriber)
    workers = transcriber.descendants()
    assert workers
    transcriber.popen.kill()
    transcriber.wait()
    # A worker sees the end of its stdin, whatever it computes.
    eventually(lambda: not any(is_alive(worker.pid) for worker in workers), "no worker left", 5.0)
    again = start(
        settings={"vault_path": str(transcriber.folder / "vault")}, arguments=MODEL_ARGUMENTS
    )
    eventually(lambda: _phase(again, job_id) == "transcribing", "the job runs again", 60.0)


@pytest.mark.proves("host.logs.stderr-not-read", "host.stdout.nothing-else")
def test_unread_pipes_hold_up_no_transcription(spawn: Start, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    settings = {"vault_path": str(tmp_path / "vault"), "log_level": "debug"}
    sidecar = spawn(read_pipes=False, settings=settings, arguments=MODEL_ARGUMENTS).wait_ready()
    # More than both pipes hold, before and while it works.
    sidecar.write(b"nonsense\n" * 1000)
    job_id = _begin(sidecar)
    sidecar.write(b"nonsense\n" * 1000)
    assert _job(sidecar, job_id)["status"] == "running"
    sidecar.write(b'{"type":"shutdown"}\n')
    assert sidecar.popen.stdout is not None
    rest: list[bytes] = []
    # Read at last, so that its end is seen: there must be nothing in it.
    reader = threading.Thread(target=lambda: rest.append(sidecar.popen.stdout.read() or b""))  # type: ignore[union-attr]
    reader.start()
    assert sidecar.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    reader.join(10)
    assert rest == [b""]
    shutil.rmtree(tmp_path / "vault")
