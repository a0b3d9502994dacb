"""A sidecar process in the hands of a test: its pipes are raw, and so are the requests."""

import contextlib
import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from host_bridge.protocol import new_token
from tests.app_client import MODELS_DIR, ROOT

START_SECONDS = 30.0
STOP_SECONDS = 20.0
Headers = Sequence[tuple[str, str]]


def eventually(check: Callable[[], bool], what: str, seconds: float = 15.0) -> None:
    """Wait until *check* holds; an AssertionError with *what* if it doesn't in time."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not check():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        pause.wait(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie doesn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer that was read to its end."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """The value of a header that is there once at the most."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} is there {len(values)} times"
        return values[0] if values else None

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of the error object, which must have the one shape."""
        error = self.json()["error"]
        assert set(error) == {"code", "message", "details"}
        return str(error["code"])


def exchange(port: int, request: bytes, *, method: str = "GET", timeout: float = 30.0) -> Answer:
    """Send the bytes of a request as they are and read one answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(request)
        return read_answer(connection, method)


def read_answer(connection: socket.socket, method: str = "GET") -> Answer:
    """Read one answer from a connection; raises what http.client raises for a broken one."""
    response = http.client.HTTPResponse(connection, method=method)
    try:
        response.begin()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        response.close()


def request_bytes(
    method: str, path: str, headers: Headers, body: bytes = b"", *, close: bool = True
) -> bytes:
    """Return the bytes of a request, with nothing added that isn't asked for but the length."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass(slots=True)
class Tokens:
    """The two tokens of a start."""

    session: str = field(default_factory=new_token)
    host: str = field(default_factory=new_token)


class Serving:
    """One `sidecar serve`. Stdout is read by a thread, stderr goes to a file beside the data."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        line: bytes | None = None,
        tokens: Tokens | None = None,
        arguments: Sequence[str] = (),
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        read_pipes: bool = True,
        stdin: int | None = None,
    ) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.tokens = tokens or Tokens()
        self._stderr_path = folder / f"stderr-{time.monotonic_ns()}"
        self._read_pipes = read_pipes
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._stdout = bytearray()
        self.ready: dict[str, Any] = {}
        self.to_end: list[int] = []
        """Processes that :meth:`end` ends too, if they are still there."""
        with self._stderr_path.open("wb") as stderr:
            self.popen = subprocess.Popen(
                [*(command or (sys.executable, "-m", "sidecar")), "serve", *arguments],
                stdin=subprocess.PIPE if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=stderr if read_pipes else subprocess.PIPE,
                env=dict(os.environ) | dict(environment or {}),
                cwd=ROOT,
                bufsize=0,
                start_new_session=True,
            )
        self._reader: threading.Thread | None = None
        if read_pipes:
            self._reader = threading.Thread(target=self._drain, daemon=True)
            self._reader.start()
        if line is None:
            line = json.dumps(self.settings(settings)).encode() + b"\n"
        if stdin is None and line:
            self.write(line)

    def settings(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The first line's settings; what *more* sets to None is left out."""
        given = {
            "session_token": self.tokens.session,
            "host_token": self.tokens.host,
            "data_dir": str(self.data_dir),
            **(more or {}),
        }
        return {name: value for name, value in given.items() if value is not None}

    # -- pipes ---------------------------------------------------------------------------------

    def _pipe(self, stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None
        return stream

    def _drain(self) -> None:
        stdout = self._pipe(self.popen.stdout)
        rest = b""
        while chunk := stdout.read(65536):
            self._stdout += chunk
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line)
        self._lines.put(b"")

    def write(self, data: bytes) -> None:
        """Write to its stdin; a process that has left already is no error."""
        stdin = self._pipe(self.popen.stdin)
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[stdin.write(view) :]

    def close_stdin(self) -> None:
        """End its stdin, as the host's death does."""
        self._pipe(self.popen.stdin).close()

    def first_message(self, seconds: float = START_SECONDS) -> dict[str, Any]:
        """Return the first line of stdout, {} if stdout ended without one."""
        if self._read_pipes:
            line = self._lines.get(timeout=seconds)
        else:
            line = self._pipe(self.popen.stdout).readline()
        message: dict[str, Any] = json.loads(line) if line else {}
        return message

    def wait_ready(self) -> "Serving":
        """Wait for ready and remember it."""
        self.ready = self.first_message()
        assert self.ready.get("event") == "ready", (self.ready, self.stderr()[-2000:])
        self.tokens.session = self.ready.get("session_token") or self.tokens.session
        self.tokens.host = self.ready.get("host_token") or self.tokens.host
        return self

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end and return the exit status."""
        status = self.popen.wait(seconds)
        if self._reader is not None:
            self._reader.join(5)
        return status

    def stdout(self) -> bytes:
        """What it has written to stdout until now."""
        return bytes(self._stdout)

    def stderr(self) -> str:
        """What it has written to stderr until now."""
        return self._stderr_path.read_text(encoding="utf-8", errors="replace")

    def log_file(self) -> str:
        """The text of all its log files."""
        files = sorted((self.data_dir / "logs").glob("*"))
        return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files)

    def log_entries(self) -> list[dict[str, Any]]:
        """The lines of stderr, each of which must be one JSON object."""
        return [json.loads(line) for line in self.stderr().splitlines()]

    # -- life ----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    @property
    def port(self) -> int:
        """The port that ready told."""
        return int(self.ready["port"])

    def descendants(self) -> list[psutil.Process]:
        """The processes below it at this moment."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def end(self) -> None:
        """End whatever is left of it; for the end of a test."""
        left = self.descendants()
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for pid in self.to_end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
        self.popen.wait(10)
        if self._reader is not None:
            self._reader.join(5)
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    # -- requests ------------------------------------------------------------------------------

    def headers(
        self, *, token: str | None = None, host: str | None = None, more: Headers = ()
    ) -> Headers:
        """The headers of an ordinary request."""
        authorization = [("Authorization", f"Bearer {token}")] if token is not None else []
        return [("Host", host or f"127.0.0.1:{self.port}"), *authorization, *more]

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        host: str | None = None,
        headers: Headers = (),
        body: bytes = b"",
        json_body: Any = None,
    ) -> Answer:
        """Send one request on a connection of its own, without a token unless one is given."""
        more = list(headers)
        if json_body is not None:
            body = json.dumps(json_body).encode()
            more.append(("Content-Type", "application/json"))
        sent = self.headers(token=token, host=host, more=more)
        return exchange(self.port, request_bytes(method, path, sent, body), method=method)

    def get(self, path: str, *, headers: Headers = ()) -> Answer:
        """GET with the session token."""
        return self.request("GET", path, token=self.tokens.session, headers=headers)

    def post(self, path: str, json_body: Any = None, *, headers: Headers = ()) -> Answer:
        """POST with the session token."""
        return self.request(
            "POST", path, token=self.tokens.session, json_body=json_body, headers=headers
        )

    def host_get(self, path: str) -> Answer:
        """GET with the host token."""
        return self.request("GET", path, token=self.tokens.host)

    def host_post(self, path: str, json_body: Any = None) -> Answer:
        """POST with the host token."""
        return self.request("POST", path, token=self.tokens.host, json_body=json_body)

    def cookie(self) -> tuple[str, str]:
        """Exchange the session token for the cookie and return the header that carries it."""
        answer = self.request("GET", f"/?token={self.tokens.session}")
        assert answer.status == 303
        return "Cookie", (answer.header("set-cookie") or "").partition(";")[0]

    def serves(self) -> bool:
        """Whether it answers."""
        try:
            return self.request("GET", "/health").status == 200
        except (OSError, http.client.HTTPException):
            return False


MODEL_ARGUMENTS = ("--models-dir", str(MODELS_DIR))
