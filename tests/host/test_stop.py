"""Every way to stop, and what must be left behind: nothing."""

import contextlib
import http.client
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from host_bridge.protocol import SHUTDOWN_LIMIT_SECONDS
from tests.app_client import ROOT
from tests.host.conftest import Start
from tests.host.serving import (
    Serving,
    eventually,
    exchange,
    is_alive,
    read_answer,
    request_bytes,
)

WORKING = (sys.executable, "-m", "tests.host.working_sidecar")
SHUTDOWN_LINE = b'{"type":"shutdown"}\n'


def _post_shutdown(sidecar: Serving) -> None:
    answer = sidecar.host_post("/api/system/shutdown")
    assert answer.status == 202
    assert answer.json()["status"] == "accepted"


WAYS: dict[str, Callable[[Serving], None]] = {
    "end of stdin": lambda sidecar: sidecar.close_stdin(),
    "shutdown line": lambda sidecar: sidecar.write(SHUTDOWN_LINE),
    "request": _post_shutdown,
    "SIGTERM": lambda sidecar: sidecar.popen.send_signal(signal.SIGTERM),
    "SIGINT": lambda sidecar: sidecar.popen.send_signal(signal.SIGINT),
}
way = pytest.mark.parametrize("stop", WAYS.values(), ids=WAYS)


def some_ways(*names: str) -> pytest.MarkDecorator:
    """The ways that one test tries; all of them go through the same stop."""
    return pytest.mark.parametrize("stop", [WAYS[name] for name in names], ids=names)


@pytest.fixture
def working(start: Start) -> Serving:
    """A sidecar that can be given endless work."""
    return start(command=WORKING)


def _begin_work(sidecar: Serving, *, stubborn: bool) -> dict[str, int]:
    answer = sidecar.host_post("/host/trial/work", {"ignore_signals": stubborn})
    assert answer.status == 201, answer.body
    work: dict[str, int] = answer.json()
    sidecar.to_end += [work["worker_pid"], work["child_pid"]]
    assert is_alive(work["worker_pid"])
    assert is_alive(work["child_pid"])
    return work


def _assert_tree_gone(work: dict[str, int]) -> None:
    assert not is_alive(work["worker_pid"])
    assert not is_alive(work["child_pid"])


@pytest.mark.proves(
    "host.stop.stdin-eof",
    "host.stop.stdin-shutdown",
    "host.stop.http-shutdown",
    "host.stop.exit-zero",
    "host.stop.database-closed",
    "host.stop.lock-removed",
    "host.stop.process-trees",
    "host.stop.children-ended",
)
@way
def test_each_way_ends_everything_in_order(
    working: Serving, stop: Callable[[Serving], None]
) -> None:
    works = [_begin_work(working, stubborn=False), _begin_work(working, stubborn=True)]
    for _ in range(20):
        working.host_post("/host/trial/events")
    stop(working)
    assert working.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    # The process has ended, so whatever it had to end must be gone by now.
    for work in works:
        _assert_tree_gone(work)
    assert not (working.data_dir / "lock").exists()
    assert working.stdout().count(b"\n") == 1
    assert [entry for entry in working.log_entries() if "stack" in entry] == []
    _assert_database_whole(working.data_dir / "app.db", events=20)
    with pytest.raises(ConnectionRefusedError):
        working.request("GET", "/health")


def _assert_database_whole(path: Path, *, events: int) -> None:
    wal = path.with_name("app.db-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        kept = connection.execute("SELECT count(*) FROM events WHERE event = 'Told'").fetchone()
        assert kept == (events,)
    finally:
        connection.close()


@pytest.mark.proves("host.stop.host-killed", "host.stop.process-trees")
@pytest.mark.parametrize(("what", "processes"), [("work", 5), ("transcribe", 2)])
def test_a_killed_host_takes_everything_with_it(tmp_path: Path, what: str, processes: int) -> None:
    """The reference host is killed with its sidecar at work; stubborn grandchildren included."""
    with (tmp_path / "errors").open("wb") as errors:
        host = subprocess.Popen(
            [sys.executable, "-m", "tests.host.killed_host", what, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
        )
    assert host.stdout is not None
    try:
        with host.stdout as stdout:
            told: list[int] = json.loads(stdout.readline() or "[]")
        assert len(told) >= processes, (tmp_path / "errors").read_text(encoding="utf-8")
        assert all(map(is_alive, told))
    finally:
        host.kill()
        host.wait(10)
    eventually(lambda: not any(map(is_alive, told)), "every process is gone", 5.0)
    assert not (tmp_path / "data" / "lock").exists()


@pytest.mark.proves("host.stop.host-killed")
def test_a_killed_host_is_noticed_though_its_other_child_holds_the_pipe(start: Start) -> None:
    # The other child inherited the pipe's end, so that stdin never ends.
    host = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sidecar = start(command=WORKING, settings={"host_pid": host.pid})
    works = [_begin_work(sidecar, stubborn=False), _begin_work(sidecar, stubborn=True)]
    host.kill()
    host.wait(10)
    assert sidecar.wait(5.0) == 0
    for work in works:
        _assert_tree_gone(work)
    assert host.stdin is not None
    host.stdin.close()


@pytest.mark.proves("host.stop.time-limit")
@some_ways("end of stdin", "request")
def test_nothing_holds_up_a_stop(working: Serving, stop: Callable[[Serving], None]) -> None:
    """A stubborn worker, a request that hangs, idle and half-sent requests, unread streams."""
    work = _begin_work(working, stubborn=True)
    hanging = [
        request_bytes("POST", "/host/trial/hang", working.headers(token=working.tokens.host)),
        request_bytes("GET", "/health", working.headers(), close=False),
        b"POST /api/tickets HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le",
        request_bytes(
            "POST",
            "/api/tickets",
            working.headers(token=working.tokens.session, more=[("Content-Length", "100")]),
        )
        + b'{"pa',
    ]
    connections = [socket.create_connection(("127.0.0.1", working.port)) for _ in hanging]
    unread = _open_stream(working)
    try:
        for connection, request in zip(connections, hanging, strict=True):
            connection.sendall(request)
        for _ in range(80):
            # Nobody reads the stream: its socket's buffers are full after some of these.
            assert working.host_post("/host/trial/events").status == 201
        stop(working)
        assert working.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    finally:
        for connection in [*connections, unread]:
            connection.close()
    _assert_tree_gone(work)
    assert not (working.data_dir / "lock").exists()


def _open_stream(sidecar: Serving) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", sidecar.port), timeout=20)
    connection.sendall(
        request_bytes(
            "GET", "/api/trial/events", sidecar.headers(token=sidecar.tokens.session), close=False
        )
    )
    return connection


@pytest.mark.proves("host.stop.resource-streams-close")
@some_ways("shutdown line", "SIGTERM")
def test_open_streams_end_at_a_frame_and_without_an_invented_end(
    working: Serving, stop: Callable[[Serving], None]
) -> None:
    for _ in range(5):
        working.host_post("/host/trial/events")
    streams = [_open_stream(working) for _ in range(3)]
    try:
        received = [_receive_until(stream, b"id: 5\n") for stream in streams]
        stop(working)
        received = [
            before + _receive_all(stream) for before, stream in zip(received, streams, strict=True)
        ]
    finally:
        for stream in streams:
            stream.close()
    assert working.wait() == 0
    for raw in received:
        head, _, chunked = raw.partition(b"\r\n\r\n")
        assert b"200 OK" in head
        assert chunked.endswith(b"\r\n0\r\n\r\n"), "the body has no proper end"
        frames = _unchunked(chunked).split(b"\n\n")
        assert frames.pop() == b"", "the stream ends inside a frame"
        events = [frame for frame in frames if not frame.startswith(b":")]
        assert len(events) == 5
        assert all(b"event: Told\n" in event for event in events)


def _receive_until(connection: socket.socket, wanted: bytes) -> bytes:
    received = b""
    while wanted not in received:
        chunk = connection.recv(65536)
        assert chunk, "the stream ended early"
        received += chunk
    return received


def _receive_all(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def _unchunked(body: bytes) -> bytes:
    content = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        content += rest[:length]
        body = rest[length + 2 :]
    return content


@pytest.mark.proves("host.stop.http-needs-host-token")
def test_the_session_token_does_not_stop_it(start: Start) -> None:
    sidecar = start()
    cookie = sidecar.cookie()
    for answer in (
        sidecar.post("/api/system/shutdown"),
        sidecar.request("POST", "/api/system/shutdown", headers=[cookie]),
    ):
        assert (answer.status, answer.code) == (403, "HOST_TOKEN_REQUIRED")
    assert sidecar.request("POST", "/api/system/shutdown").status == 401
    with pytest.raises(subprocess.TimeoutExpired):
        sidecar.wait(1.0)
    assert sidecar.serves()


@pytest.mark.proves("host.stop.new-requests")
def test_a_request_after_the_stop_began_starts_no_work(working: Serving) -> None:
    """Requests keep coming while it stops: each is answered as before, by 503, or not at all."""
    work = _begin_work(working, stubborn=True)
    bearer = [("Authorization", f"Bearer {working.tokens.host}")]
    ask = request_bytes("GET", "/api/system/info", working.headers(more=bearer), close=False)
    body = b'{"ignore_signals": false}'
    more = [*bearer, ("Content-Type", "application/json")]
    create = request_bytes("POST", "/host/trial/work", working.headers(more=more), body)
    created: list[int] = []
    asker = threading.Thread(target=lambda: _ask_until_closed(working.port, create, created))
    # This connection is from before the stop: requests reach it over that one afterwards too.
    with socket.create_connection(("127.0.0.1", working.port), timeout=20) as kept:
        kept.sendall(ask)
        assert read_answer(kept).status == 200
        working.write(SHUTDOWN_LINE)
        eventually(lambda: "stop_requested" in working.log_file(), "the stop has begun")
        asker.start()
        statuses: list[int] = []
        with contextlib.suppress(OSError, http.client.HTTPException):
            while 503 not in statuses:
                kept.sendall(ask)
                answer = read_answer(kept)
                statuses.append(answer.status)
                assert answer.status == 200 or answer.code == "SHUTTING_DOWN"
    assert working.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    asker.join(20)
    assert set(statuses) <= {200, 503}
    assert set(created) <= {201, 503}
    _assert_tree_gone(work)
    connection = sqlite3.connect(working.data_dir / "app.db")
    jobs = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
    connection.close()
    assert jobs == 1 + created.count(201)


def _ask_until_closed(port: int, request: bytes, statuses: list[int]) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        while True:
            statuses.append(exchange(port, request, method="POST").status)


@pytest.mark.proves("host.stop.repeated")
def test_many_stop_requests_stop_it_once(working: Serving) -> None:
    _begin_work(working, stubborn=True)
    request = request_bytes(
        "POST", "/api/system/shutdown", working.headers(token=working.tokens.host)
    )
    statuses: list[int] = []

    def post() -> None:
        try:
            statuses.append(exchange(working.port, request, method="POST").status)
        except Exception:  # noqa: BLE001 - a stop that is under way may close the connection
            statuses.append(0)

    posts = [threading.Thread(target=post) for _ in range(5)]
    for thread in posts:
        thread.start()
    working.write(SHUTDOWN_LINE * 20)
    working.close_stdin()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        working.popen.send_signal(number)
    for thread in posts:
        thread.join(20)
    assert working.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    assert set(statuses) <= {202, 503, 0}
    entries = working.log_entries()
    assert sum(entry["event"] == "lifecycle.stop_requested" for entry in entries) == 1
    assert [entry for entry in entries if entry["level"] == "error"] == []


@pytest.mark.proves("host.stop.exit-zero", "host.stop.repeated")
def test_a_stop_before_ready_is_a_stop(spawn: Start) -> None:
    sidecar = spawn()
    sidecar.write(SHUTDOWN_LINE)
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    assert not (sidecar.data_dir / "lock").exists()


@pytest.mark.proves("host.stop.unknown-line")
def test_lines_that_mean_nothing_are_ignored(start: Start) -> None:
    sidecar = start()
    lines = [
        b"nonsense",
        b'{"type": "restart"}',
        b"[]",
        b'{"type": ["shutdown"]}',
        b"\xff\xfe\x00",
        b"",
        b"x" * 200_000,
        b'{"type": "SHUTDOWN"}',
    ]
    for line in lines:
        sidecar.write(line + b"\n")
    eventually(lambda: _ignored(sidecar) >= len(lines) - 1, "a warning for each of them")
    assert sidecar.serves()
    assert "nonsense" not in sidecar.stderr()
    sidecar.write(SHUTDOWN_LINE)
    assert sidecar.wait() == 0


def _ignored(sidecar: Serving) -> int:
    return sum(
        entry["event"] == "lifecycle.line_ignored" and entry["level"] == "warning"
        for entry in sidecar.log_entries()
    )


@pytest.mark.proves("host.stop.jobs-recoverable")
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_running_job_is_taken_up_by_the_next_start(start: Start, how: str) -> None:
    first = start(command=WORKING)
    work = _begin_work(first, stubborn=False)
    if how == "stopped":
        first.close_stdin()
        assert first.wait() == 0
    else:
        first.popen.kill()
        first.wait()
    second = start(command=WORKING)
    path = f"/host/trial/jobs/{work['job_id']}"
    eventually(lambda: second.host_get(path).json()["status"] == "running", "it runs again")
    eventually(lambda: len(second.descendants()) >= 2, "its worker runs again")
    assert second.host_get(path).json()["starts"] == (1 if how == "stopped" else 2)
    if how == "killed":
        second.popen.kill()
        second.wait()
        third = start(command=WORKING)
        expected = {"status": "failed", "starts": 2, "error_code": "JOB_INTERRUPTED"}
        eventually(lambda: third.host_get(path).json() == expected, "it isn't tried for ever")


@pytest.mark.proves("host.stop.time-limit")
def test_a_server_that_hangs_is_ended_by_its_watchdog(start: Start) -> None:
    """The loop itself is blocked, so that no orderly stop can begin."""
    sidecar = start(command=(sys.executable, "-m", "tests.host.blocked_sidecar"))
    blocked = threading.Thread(target=lambda: _ignore_failure(sidecar), daemon=True)
    blocked.start()
    eventually(lambda: "trial.blocked" in sidecar.log_file(), "the loop is blocked")
    began = time.monotonic()
    sidecar.close_stdin()
    assert sidecar.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    assert time.monotonic() - began < SHUTDOWN_LIMIT_SECONDS
    blocked.join(10)
    assert not (sidecar.data_dir / "lock").exists()


def _ignore_failure(sidecar: Serving) -> None:
    try:
        sidecar.get("/api/trial/block")
    except Exception:  # noqa: BLE001 - the connection breaks off, which is expected
        return
