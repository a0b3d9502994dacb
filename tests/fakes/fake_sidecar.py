"""A program that speaks a sidecar's side of the host protocol, well or badly.

Run as ``fake_sidecar.py serve MODE [PATH]`` by the launcher's tests. It knows nothing of the
product; what it shares with it is the protocol module alone.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from host_bridge.protocol import (
    FatalMessage,
    ReadyMessage,
    SessionSettings,
    parse_request,
)

LAST_EVENT = 6


class Handler(BaseHTTPRequestHandler):
    """Echoes, streams, crashes."""

    protocol_version = "HTTP/1.1"
    settings: SessionSettings
    connections: ClassVar[set[tuple[str, int]]] = set()

    def log_message(self, format: str, *args: object) -> None:
        log(format % args)

    def do_GET(self) -> None:
        if self.path == "/crash":
            os._exit(3)
        if self.path == "/events":
            self._stream()
        elif self.path == "/hang-up":
            self.close_connection = True
            self.connection.close()
        elif self.path == "/error":
            error = {"code": "NOTE_NOT_FOUND", "message": "gone", "details": {"id": 1}}
            self._answer(404, {"error": error})
        elif self.path == "/plain-error":
            self._answer_bytes(500, b"oh", "text/plain")
        else:
            self._echo()

    def do_POST(self) -> None:
        self._echo()

    do_PUT = do_PATCH = do_DELETE = do_POST

    def _echo(self) -> None:
        self.connections.add(self.client_address)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        holder = {self.settings.session_token: "session", self.settings.host_token: "host"}
        self._answer(
            200,
            {
                "method": self.command,
                "path": self.path,
                "holder": holder.get(token),
                "content_type": self.headers.get("Content-Type"),
                "body": body.decode("utf-8"),
                "pid": os.getpid(),
                "data_dir": self.settings.data_dir,
                "connections": len(self.connections),
            },
        )

    def _answer(self, status: int, body: object) -> None:
        self._answer_bytes(status, json.dumps(body).encode("utf-8"), "application/json")

    def _answer_bytes(self, status: int, body: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        """Two events a connection, and the connection breaks in the middle of the third."""
        cursor = int(self.headers.get("Last-Event-ID") or 0)
        if cursor >= LAST_EVENT:
            self.send_response(204)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunk(b": hello\nretry: 10\n\n")
        for number in range(cursor + 1, min(cursor + 2, LAST_EVENT) + 1):
            data = json.dumps({"sequence": number, "text": "\u4f60\u597d"}, ensure_ascii=False)
            self._chunk(f"id: {number}\nevent: Progress\ndata: {data}\n\n".encode())
        self._chunk(f"id: {cursor + 3}\nevent: Prog".encode())
        self.close_connection = True
        self.connection.shutdown(2)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def serve(settings: SessionSettings) -> None:
    """Tell that we are ready, then serve until stdin ends or asks for a stop."""
    Handler.settings = settings
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    ready = ReadyMessage(port, os.getpid(), "0.0.0", f"http://127.0.0.1:{port}")
    write(ready.to_line())


def wait_for_stop(mark: Path | None) -> None:
    """Read stdin; leave a mark that tells a shutdown line from the mere end of the pipe."""
    line = sys.stdin.buffer.readline()
    how = "end"
    if line:
        parse_request(line)
        how = "line"
    if mark is not None:
        mark.write_text(how, encoding="utf-8")


def log(text: str) -> None:
    """Write a line to stderr at once."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def write(line: bytes) -> None:
    """Write to stdout at once."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def be_stubborn(mark: Path) -> None:
    """Start a child, ignore every polite request, and never end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    mark.write_text(str(child.pid), encoding="utf-8")


def starts_so_far(counter: Path) -> int:
    """Count this start in a file."""
    count = int(counter.read_text(encoding="utf-8")) if counter.exists() else 0
    counter.write_text(str(count + 1), encoding="utf-8")
    return count


def main() -> int:
    """Behave as the mode says; gives the exit status."""
    assert sys.argv[1] == "serve"
    mode = sys.argv[2]
    path = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    settings, _ = SessionSettings.from_line(sys.stdin.buffer.readline())
    log("the log begins")
    if mode == "fatal":
        log("x" * 20000 + " the disk is full")
        write(FatalMessage("DATA_DIR_IN_USE", "another sidecar serves this folder").to_line())
        return 21
    if mode == "exit":
        log("Traceback: no module named x")
        return 1
    if mode == "garbage":
        write(b"Welcome to the sidecar!\n")
    elif mode == "endless-line":
        write(b"x" * 200_000)
    elif mode == "silent":
        log("still loading")
    else:
        assert path is not None or mode == "good"
        if mode == "second-start-fails" and path is not None and starts_so_far(path) == 1:
            return 7
        if mode == "one-start" and path is not None and starts_so_far(path) > 0:
            return 7
        serve(settings)
        if mode == "chatty":
            write(b"y" * 3_000_000 + b"\n")
            log("z" * 3_000_000)
        if mode == "stubborn" and path is not None:
            be_stubborn(path)
            threading.Event().wait()
    wait_for_stop(path if mode in ("marked", "chatty") else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
