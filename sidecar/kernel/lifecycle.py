"""When the program ends, and how it learns that it should.

A stop is asked for by a line on stdin, by the end of stdin (the host's death, however sudden), by
the host's process id being gone, by a request, or by a signal. However many ask, it happens once.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final

from host_bridge.protocol import FIRST_LINE_LIMIT, ProtocolViolation, parse_request
from sidecar.kernel.logging import get_logger

log = get_logger(__name__)

HOST_POLL_SECONDS: Final = 1.0
HOST_LOST: Final = frozenset({"stdin_closed", "host_gone"})
"""Reasons to stop that mean, or may mean, that the host has died."""


class StdinLines:
    """Reads the host's lines on a thread of its own, from the first line to the end of the pipe."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._first: bytes | None = None
        self._first_known = threading.Event()
        self._on_line: Callable[[bytes], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._later: list[bytes | None] = []
        self._gate = threading.Lock()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def first_line(self, timeout: float) -> bytes | None:
        """Return the first line; b"" if stdin ended before it did. None after *timeout* seconds."""
        if not self._first_known.wait(timeout):
            return None
        return self._first

    def follow(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Hand over every later line, those that came already included; called on the thread."""
        with self._gate:
            self._on_line, self._on_end = on_line, on_end
            later, self._later = self._later, []
        for line in later:
            self._hand_over(line)

    def _hand_over(self, line: bytes | None) -> None:
        with self._gate:
            if self._on_line is None or self._on_end is None:
                self._later.append(line)
                return
            on_line, on_end = self._on_line, self._on_end
        if line is None:
            on_end()
        else:
            on_line(line)

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._descriptor, 65536)
            except OSError:
                chunk = b""
            if not chunk:
                self._take_first(b"")
                self._hand_over(None)
                return
            self._buffer += chunk
            self._split()

    def _split(self) -> None:
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            if not self._take_first(line):
                self._hand_over(line)
        if len(self._buffer) > FIRST_LINE_LIMIT:
            # Too long already: it is refused as it stands, and what follows of it is dropped.
            line, self._buffer = self._buffer, b""
            if not self._take_first(line):
                self._hand_over(line)

    def _take_first(self, line: bytes) -> bool:
        if self._first_known.is_set():
            return False
        self._first = line
        self._first_known.set()
        return True


class Lifecycle:
    """Collects the reasons to stop; :attr:`stop_requested` is set once, by the first."""

    def __init__(self, on_first_request: Callable[[str], None] = lambda _: None) -> None:
        """*on_first_request* is called with the reason, on the thread that asks first.

        It is called at once, also when the event loop hangs.
        """
        self.stop_requested = asyncio.Event()
        self._on_first_request = on_first_request
        self._asked = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []

    def request_stop(self, reason: str) -> None:
        """Ask for a stop, from any thread."""
        if self._asked.acquire(blocking=False):
            self._on_first_request(reason)
        with contextlib.suppress(RuntimeError):
            # A closed loop has stopped already.
            self._loop.call_soon_threadsafe(self._set, reason)

    def _set(self, reason: str) -> None:
        if not self.stop_requested.is_set():
            log.info("lifecycle.stop_requested", extra={"reason": reason})
            self.stop_requested.set()

    def watch_stdin(self, lines: StdinLines) -> None:
        """Stop at the end of stdin, or at a shutdown line."""
        lines.follow(self._on_line, lambda: self.request_stop("stdin_closed"))

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            parse_request(line)
        except ProtocolViolation as error:
            log.warning("lifecycle.line_ignored", extra={"reason": error.reason_key})
            return
        self.request_stop("shutdown_line")

    def watch_signals(self) -> None:
        """Stop at SIGTERM, SIGINT, SIGHUP and, on Windows, at Ctrl+Break."""
        names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
        for name in names:
            number = getattr(signal, name, None)
            if number is None:
                continue
            if sys.platform == "win32":
                signal.signal(number, lambda *_, name=name: self.request_stop(name))
            else:
                self._loop.add_signal_handler(number, self.request_stop, name)

    def watch_host(self, pid: int) -> None:
        """Stop when the process *pid* is gone: stdin may be held open by somebody else."""
        self._tasks.append(asyncio.create_task(self._poll_host(pid), name="watch-host"))

    async def _poll_host(self, pid: int) -> None:
        import psutil  # noqa: PLC0415 - not needed before ready

        try:
            host = psutil.Process(pid)
            # No system tells of the end of a process that isn't a child.
            while host.is_running() and host.status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110
                await asyncio.sleep(HOST_POLL_SECONDS)
        except psutil.NoSuchProcess:
            pass
        except psutil.AccessDenied:
            log.warning("lifecycle.host_not_visible")
            return
        self.request_stop("host_gone")

    def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
