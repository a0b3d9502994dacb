"""The child's end of the worker protocol; see :mod:`sidecar.kernel.workers.client`.

The process leaves as soon as its stdin ends, whatever it is computing: that is how a worker never
outlives the program that started it. This module is also run, as plain source, by interpreters that
have nothing of the server: it imports the standard library alone.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Final, Protocol

PROTOCOL: Final = 1
"""The version of the messages; both ends must have the same."""

ALIVE_SECONDS: Final = 10.0
OUT_OF_MEMORY: Final = 70
"""The exit status of a worker that had no more memory, or took more than it may."""


class WorkCancelled(Exception):
    """The request was cancelled; raised by :meth:`Task.check`."""


class WorkFailed(Exception):
    """The request failed in a way that has a project code."""

    def __init__(self, code: str, **params: object) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


class Task:
    """A request that is being worked on."""

    def __init__(self, request_id: int, send: Callable[[dict[str, Any]], None]) -> None:
        self._id = request_id
        self._send = send
        self.cancelled = threading.Event()

    def progress(self, data: dict[str, Any]) -> None:
        """Tell the server how far the work is."""
        self._send({"type": "progress", "id": self._id, "data": data})

    def check(self) -> None:
        """Raise :class:`WorkCancelled` if the server no longer wants the result."""
        if self.cancelled.is_set():
            raise WorkCancelled


class Method(Protocol):
    """What a worker can do: takes the parameters of a request and returns its result."""

    def __call__(self, params: dict[str, Any], task: Task, /) -> dict[str, Any]:
        """Do the work."""
        ...


class WorkerServer:
    """Reads requests from stdin and runs them one after the other on the main thread."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        at_end: Callable[[], None] = lambda: None,
        *,
        packages: Iterable[str] = (),
        between: Callable[[], object] = lambda: None,
    ) -> None:
        """*at_end* is called before the process leaves, on any thread: it ends what a method started.

        *packages* are distributions whose versions the server is told. *between* is called after each
        answer, when nobody waits for this process: it clears away.
        """
        self._between = between
        self._methods = methods
        self._packages = tuple(packages)
        self._at_end = at_end
        self._output = _private_stdout()
        self._gate = threading.Lock()
        self._requests: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        self._current: tuple[int, Task] | None = None
        self._unwanted: set[int] = set()

    def run(self) -> None:
        """Serve until stdin ends; doesn't return."""
        self._send(
            {
                "type": "ready",
                "protocol": PROTOCOL,
                "python": ".".join(map(str, sys.version_info[:3])),
                "packages": {name: package_version(name) for name in self._packages},
            }
        )
        threading.Thread(target=self._read, name="worker-stdin", daemon=True).start()
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: bool(self._requests))
                request = self._requests.pop(0)
                task = Task(request["id"], self._send)
                self._current = (request["id"], task)
                if request["id"] in self._unwanted:
                    task.cancelled.set()
            self._serve(request, task)
            with self._arrived:
                self._current = None
            self._between()

    def _serve(self, request: dict[str, Any], task: Task) -> None:
        over = threading.Event()
        threading.Thread(target=self._sign_of_life, args=(request["id"], over), daemon=True).start()
        answer: dict[str, Any]
        try:
            result = self._methods[request["method"]](request["params"], task)
            answer = {"type": "result", "id": request["id"], "data": result}
        except WorkCancelled:
            answer = {"type": "error", "id": request["id"], "code": "JOB_CANCELLED"}
        except WorkFailed as failure:
            answer = {
                "type": "error",
                "id": request["id"],
                "code": failure.code,
                "params": failure.params,
            }
        except MemoryError:
            # Nothing can be trusted after this; the server sees a crash and starts a new worker.
            self._leave(OUT_OF_MEMORY)
        except Exception as error:  # noqa: BLE001 - anything else that a library raises is this code
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            answer = {"type": "error", "id": request["id"], "code": "INTERNAL_ERROR"}
        finally:
            over.set()
        self._send(answer)

    def _sign_of_life(self, request_id: int, over: threading.Event) -> None:
        while not over.wait(ALIVE_SECONDS):
            self._send({"type": "alive", "id": request_id})

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            with self._arrived:
                if message["type"] == "request":
                    self._requests.append(message)
                    self._arrived.notify_all()
                elif message["type"] == "cancel":
                    self._unwanted = {message["id"]}
                    if self._current is not None and self._current[0] == message["id"]:
                        self._current[1].cancelled.set()
        self._leave(0)

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._gate:
            try:
                self._output.write(line)
                self._output.flush()
            except OSError:
                self._leave(0)

    def _leave(self, status: int) -> None:
        try:
            self._at_end()
        finally:
            os._exit(status)


def package_version(name: str) -> str | None:
    """Return the version of an installed distribution, None if it isn't there. Imports nothing of it."""
    from importlib import metadata  # noqa: PLC0415 - most workers tell of no package

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _private_stdout() -> BinaryIO:
    """Keep stdout for messages alone: what a library prints goes to stderr instead."""
    private = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return private
