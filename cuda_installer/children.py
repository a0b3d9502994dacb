"""Child programs of an installation: a clean environment, their lines, and an end for their tree."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cuda_installer.errors import Cancelled

GRACE_SECONDS: Final = 2.0
_DROPPED_PREFIXES: Final = ("PYTHON", "_PYI_", "_MEI", "UV_", "CUDA_INSTALLER_", "VIRTUAL_ENV")
# What a user may have set so that uv reaches an index at all.
_KEPT: Final = frozenset(
    {
        "UV_DEFAULT_INDEX",
        "UV_INDEX",
        "UV_FIND_LINKS",
        "UV_HTTP_TIMEOUT",
        "UV_INSECURE_HOST",
        "UV_NATIVE_TLS",
        "UV_SYSTEM_CERTS",
        "UV_PYTHON_INSTALL_MIRROR",
    }
)
_LIBRARY_PATHS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBPATH")


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what belongs to this program or to a frozen one."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not name.upper().startswith(_DROPPED_PREFIXES)
    }
    for name in _LIBRARY_PATHS:
        original = kept.pop(f"{name}_ORIG", None)
        if original is not None:
            kept[name] = original
        elif getattr(sys, "frozen", False):
            kept.pop(name, None)
    return {**kept, **extra}


class Children:
    """Runs one child program at a time, and ends it when the work is cancelled from any thread."""

    def __init__(self, on_start: Callable[[int], None] = lambda _: None) -> None:
        """*on_start* gets each child's process id, which is its process group's too (POSIX)."""
        self._on_start = on_start
        self._gate = threading.Lock()
        self._running: subprocess.Popen[str] | None = None
        self._cancelled = False

    def check(self) -> None:
        """Raise :class:`Cancelled` if the work was cancelled."""
        if self._cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """End the child that runs and start no other."""
        self._cancelled = True
        with self._gate:
            running = self._running
        if running is not None:
            _end_tree(running)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        timeout: float,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> tuple[int, list[str]]:
        """Run a program to its end and return its exit status and the lines that it wrote.

        Both of its streams count; *on_line* gets each line when it comes. Raises
        :class:`Cancelled`, TimeoutError once *timeout* seconds pass, or OSError.
        """
        self.check()
        process = _start(command, environment)
        with self._gate:
            self._running = process
        try:
            self._on_start(process.pid)
            lines = self._read(process, time.monotonic() + timeout, on_line)
            status = process.wait()
        finally:
            _end_tree(process)
            with self._gate:
                self._running = None
        self.check()
        return status, lines

    def _read(
        self, process: subprocess.Popen[str], deadline: float, on_line: Callable[[str], None]
    ) -> list[str]:
        arrived: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(process, arrived), daemon=True).start()
        lines: list[str] = []
        while True:
            try:
                line = arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if line is None:
                return lines
            lines.append(line)
            on_line(line)
            self.check()


def _pump(process: subprocess.Popen[str], arrived: "queue.SimpleQueue[str | None]") -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for line in stream:
            arrived.put(line.rstrip("\r\n"))
    arrived.put(None)


def _start(command: Sequence[str | Path], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    options: dict[str, Any] = {}
    if sys.platform == "win32":
        options["creationflags"] = subprocess.CREATE_NO_WINDOW
    else:
        options["process_group"] = 0
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        encoding="utf-8",
        errors="replace",
        **options,
    )


def _end_tree(process: subprocess.Popen[str]) -> None:
    """End a child and what it started: ask first, and kill what is left."""
    if sys.platform == "win32":
        # Windows has no groups that could be ended as one; taskkill walks the tree.
        if process.poll() is None:
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)],
                capture_output=True,
                check=False,
                timeout=GRACE_SECONDS * 5,
            )
            process.wait()
        return
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    # The group outlives its leader as long as a descendant runs.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
