"""One run of a sidecar: spawn, first line, ready, pipes, stop."""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO

from host_bridge.errors import SidecarStartError, SidecarTimeoutError
from host_bridge.process_tree import end_tree
from host_bridge.protocol import (
    FIRST_LINE_LIMIT,
    SHUTDOWN_LIMIT_SECONDS,
    FatalMessage,
    ProtocolViolation,
    ReadyMessage,
    SessionSettings,
    ShutdownRequest,
    parse_event,
)

LOG_TAIL_BYTES = 8192
_READ_BYTES = 65536
_EXIT_AFTER_FATAL_SECONDS = 5.0
_TERMINATE_SECONDS = 2.0
_PIPE_END_SECONDS = 2.0


class SidecarProcess:
    """A sidecar that was started. Threads read both its pipes until they end.

    Raises :class:`SidecarStartError` with ``NOT_FOUND`` if the program cannot be run.
    """

    def __init__(
        self, command: Sequence[str], settings: SessionSettings, env: Mapping[str, str] | None
    ) -> None:
        self.started_at = time.monotonic()
        self.ready_seconds = 0.0
        self._popen = _spawn(command, child_environment(os.environ if env is None else env))
        self._first_line: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._tail = bytearray()
        self._tail_lock = threading.Lock()
        self._stdin_lock = threading.Lock()
        self._stop_lock = threading.Lock()
        self.extra_stdout_bytes = 0
        self._readers = [
            _thread(self._drain_stdout, "sidecar-stdout"),
            _thread(self._drain_stderr, "sidecar-stderr"),
        ]
        self._write(settings.to_line())

    @property
    def pid(self) -> int:
        """The process that was spawned."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal, or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end; None if it still runs after ``timeout`` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def log_tail(self) -> str:
        """The last 8 KiB of stderr."""
        with self._tail_lock:
            return self._tail.decode("utf-8", "replace")

    def wait_until_ready(self, timeout: float) -> ReadyMessage:
        """Wait for the first line of stdout; a sidecar that fails to start is ended and reaped.

        Raises :class:`SidecarStartError` or :class:`SidecarTimeoutError`.
        """
        try:
            line = self._first_line.get(timeout=timeout)
        except queue.Empty:
            self.kill()
            message = f"the sidecar was not ready within {timeout:g} s"
            raise SidecarTimeoutError("READY_TIMEOUT", message, self.log_tail()) from None
        self.ready_seconds = time.monotonic() - self.started_at
        if not line:
            raise self._start_error("EXITED", "the sidecar ended before it was ready")
        try:
            event = parse_event(line)
        except ProtocolViolation as violation:
            message = f"the sidecar's first line is not valid: {violation.reason_key}"
            raise self._start_error("PROTOCOL_VIOLATION", message, patience=0.0) from None
        if isinstance(event, FatalMessage):
            raise self._start_error(event.code, event.message)
        return event

    def stop(self, limit: float = SHUTDOWN_LIMIT_SECONDS) -> int:
        """Ask for a graceful stop, wait ``limit`` seconds, then end the tree. Gives the status."""
        with self._stop_lock:
            if self._popen.poll() is None:
                self._write(ShutdownRequest().to_line())
                self._close_stdin()
                if self.wait(limit) is None:
                    end_tree(self.pid, force=False)
                    if self.wait(_TERMINATE_SECONDS) is None:
                        end_tree(self.pid, force=True)
            return self._reap()

    def kill(self) -> int:
        """End the process tree at once. Gives the exit status."""
        with self._stop_lock:
            if self._popen.poll() is None:
                end_tree(self.pid, force=True)
            return self._reap()

    def _start_error(
        self, code: str, message: str, patience: float = _EXIT_AFTER_FATAL_SECONDS
    ) -> SidecarStartError:
        exit_code = self.wait(patience)
        if exit_code is None:
            self.kill()
        else:
            self._reap()
        return SidecarStartError(code, message, self.log_tail(), exit_code)

    def _reap(self) -> int:
        exit_code = self._popen.wait()
        self._close_stdin()
        # A grandchild that outlived its parent may hold the pipes open: the threads then go on,
        # which does no harm, but nobody waits for them.
        for reader in self._readers:
            reader.join(_PIPE_END_SECONDS)
        return exit_code

    def _write(self, line: bytes) -> None:
        stdin = self._pipe(self._popen.stdin)
        with self._stdin_lock:
            try:
                view = memoryview(line)
                while view:
                    view = view[stdin.write(view) :]
            except (BrokenPipeError, ValueError):
                # It has ended or its stdin was closed before; whoever waits for it learns why.
                return
            except OSError:
                if self._popen.poll() is None:
                    raise

    def _close_stdin(self) -> None:
        with self._stdin_lock:
            self._pipe(self._popen.stdin).close()

    def _drain_stdout(self) -> None:
        with self._pipe(self._popen.stdout) as stdout:
            line, rest = _first_line(stdout)
            self._first_line.put(line)
            self.extra_stdout_bytes += len(rest)
            while chunk := stdout.read(_READ_BYTES):
                self.extra_stdout_bytes += len(chunk)

    def _drain_stderr(self) -> None:
        with self._pipe(self._popen.stderr) as stderr:
            while chunk := stderr.read(_READ_BYTES):
                with self._tail_lock:
                    self._tail += chunk
                    del self._tail[:-LOG_TAIL_BYTES]

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise AssertionError("the sidecar is always spawned with three pipes")
        return stream


def child_environment(parent: Mapping[str, str]) -> dict[str, str]:
    """The environment for a sidecar: the parent's, without what a frozen parent put there."""
    env = {
        name: value
        for name, value in parent.items()
        if not name.startswith("_PYI_") and name != "_MEIPASS2"
    }
    # A frozen host points the loader at its own libraries, which are not the sidecar's.
    if getattr(sys, "frozen", False):
        for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
            original = env.pop(f"{name}_ORIG", None)
            env.pop(name, None)
            if original is not None:
                env[name] = original
    return env


def _spawn(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    flags = 0
    if sys.platform == "win32":
        # A console of its own without a window: without any console stdout would be None there.
        flags = subprocess.CREATE_NO_WINDOW
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(env),
            # Ctrl-C in the host's terminal is for the host, which then stops the sidecar in order.
            start_new_session=sys.platform != "win32",
            creationflags=flags,
        )
    except OSError as error:
        message = f"cannot run {command[0]}: {error.strerror}"
        raise SidecarStartError("NOT_FOUND", message) from error


def _first_line(stdout: IO[bytes]) -> tuple[bytes, bytes]:
    """The first line with its end, and what was read beyond it; an empty line at the pipe's end.

    A line that grows past the limit is given as it is, so that it is refused at once.
    """
    buffer = bytearray()
    while len(buffer) <= FIRST_LINE_LIMIT:
        chunk = stdout.read(_READ_BYTES)
        if not chunk:
            break
        buffer += chunk
        end = buffer.find(b"\n")
        if end >= 0:
            return bytes(buffer[: end + 1]), bytes(buffer[end + 1 :])
    return bytes(buffer), b""


def _thread(target: object, name: str) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread
