"""Work in child processes: one JSON message a line, over their stdin and stdout.

To the worker: ``{"type": "request", "id", "method", "params"}`` and ``{"type": "cancel", "id"}``.
From it, once: ``{"type": "ready", "protocol", "python", "packages"}``; for each request: any number of ``{"type": "progress", "id", "data"}`` and then one
``{"type": "result", "id", "data"}`` or ``{"type": "error", "id", "code", "params"}``.

A crash or a kill fails the one request. Cancelling asks first and then ends the process tree. A
worker that nothing has used for a while is ended, which gives back its model's memory.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.kernel.processes import (
    child_environment,
    end_tree,
    exited,
    kill_group,
    kill_tree,
    own_command,
    own_environment,
    spawn,
)
from sidecar.kernel.workers.process import PROTOCOL

log = get_logger(__name__)

CANCEL_GRACE_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 120.0
# A worker says something at least this often while it works: it sends progress, or a sign of life.
SILENCE_SECONDS: Final = 120.0
# A crash shows at once as the end of stdout, unless a descendant holds that open.
EXIT_LOOK_SECONDS: Final = 0.5
PIPE_END_SECONDS: Final = 0.5
_STDERR_LINES: Final = 20
_MESSAGE_TYPES: Final = frozenset({"ready", "alive", "progress", "result", "error"})


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """How to start a worker: ``sidecar worker <name>``, or a command of its own."""

    name: str
    command: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    idle_seconds: float = IDLE_SECONDS
    silence_seconds: float = SILENCE_SECONDS


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child of this process, for the host's status page."""

    pid: int
    kind: str


class _Process:
    """One running child and the request that it works on."""

    def __init__(self, process: asyncio.subprocess.Process, spec: WorkerSpec) -> None:
        self.process = process
        self.spec = spec
        self.messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._tasks = [
            asyncio.create_task(self._read_stdout(), name=f"{spec.name}-stdout"),
            asyncio.create_task(self._read_stderr(), name=f"{spec.name}-stderr"),
        ]
        self._exit = asyncio.create_task(self._watch_exit(), name=f"{spec.name}-exit")

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        try:
            while line := await self.process.stdout.readline():
                message = _message_of(line)
                if message is None:
                    log.warning("worker.stray_output", extra={"worker": self.spec.name})
                else:
                    self.messages.put_nowait(message)
        except ValueError:
            # A line over the limit: nothing after it can be trusted.
            log.error("worker.line_too_long", extra={"worker": self.spec.name})
            kill_tree(self.process.pid)
        finally:
            self.messages.put_nowait(None)

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):
            while line := await self.process.stderr.readline():
                text = line.decode("utf-8", "replace").rstrip()
                self.stderr.append(text)
                log.debug("worker.stderr", extra={"worker": self.spec.name, "line": text})

    async def _watch_exit(self) -> None:
        """Notice the end of the child though something that it started holds its pipes open."""
        await exited(self.process, look_every=EXIT_LOOK_SECONDS)
        kill_group(self.process.pid)
        await self._finish_reading()

    async def _finish_reading(self) -> None:
        """Read what is left in the pipes, but don't wait for somebody else's end of them."""
        _, unfinished = await asyncio.wait(self._tasks, timeout=PIPE_END_SECONDS)
        for task in unfinished:
            task.cancel()

    async def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(line)
            await self.process.stdin.drain()

    async def end(self, *, grace: float) -> None:
        # Closing stdin is a worker's request to leave.
        if self.process.stdin is not None:
            self.process.stdin.close()
        await end_tree(self.process, grace=grace)
        await self._finish_reading()
        self._exit.cancel()
        await asyncio.gather(*self._tasks, self._exit, return_exceptions=True)
        # There is no public way to close pipes that a stranger holds open at their other end.
        transport = self.process._transport  # type: ignore[attr-defined]  # noqa: SLF001
        transport.close()


def _message_of(line: bytes) -> dict[str, Any] | None:
    """Return the message of a line; None for what a library may have printed."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("type") not in _MESSAGE_TYPES:
        return None
    complete = (
        message["type"] == "alive"
        or (message["type"] == "ready" and isinstance(message.get("packages"), dict))
        or (message["type"] == "error" and isinstance(message.get("code"), str))
        or isinstance(message.get("data"), dict)
    )
    return message if complete else None


class Worker:
    """A child process that is there when it is needed, and does one request at a time."""

    def __init__(self, spec: WorkerSpec, on_change: Callable[[], None] = lambda: None) -> None:
        self.spec = spec
        self._on_change = on_change
        self._turn = asyncio.Lock()
        self._child: _Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._next_id = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id of the child, None while there is none."""
        return self._child.process.pid if self._child is not None and self._child.alive else None

    async def request(
        self, method: str, params: dict[str, Any]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Run *method* and yield its messages: ``progress`` ones, then one ``result``.

        Raises the project error that the worker answers, ``WORKER_CRASHED`` if it dies, or
        ``WORKER_TIMEOUT`` if it falls silent. Closing the iteration early, or cancelling the task
        that runs it, cancels the work: when that returns, the worker no longer computes for it.
        """
        async with self._turn:
            child = await self._running_child()
            self._next_id += 1
            request_id = self._next_id
            finished = False
            try:
                await child.send(
                    {"type": "request", "id": request_id, "method": method, "params": params}
                )
                async for message in self._messages(child, request_id):
                    finished = message["type"] != "progress"
                    yield message
            except ProjectError:
                finished = True
                raise
            finally:
                if not finished:
                    await asyncio.shield(self._cancel(child, request_id))
                self._rest()

    async def _messages(
        self, child: _Process, request_id: int
    ) -> AsyncGenerator[dict[str, Any], None]:
        while True:
            try:
                message = await asyncio.wait_for(child.messages.get(), self.spec.silence_seconds)
            except TimeoutError:
                log.error("worker.silent", extra={"worker": self.spec.name})
                await self._drop(child)
                raise ProjectError("WORKER_TIMEOUT") from None
            if message is None:
                await self._report_crash(child)
                raise ProjectError("WORKER_CRASHED")
            if message["type"] == "ready":
                await self._welcome(child, message)
            if message.get("id") != request_id or message.get("type") == "alive":
                continue
            if message["type"] == "error":
                raise ProjectError(message["code"], **message.get("params", {}))
            yield message
            if message["type"] == "result":
                return

    async def _welcome(self, child: _Process, ready: dict[str, Any]) -> None:
        """Take note of what the child is; raises ``RUNTIME_OUTDATED`` if it speaks another protocol."""
        log.info(
            "worker.ready",
            extra={
                "worker": self.spec.name,
                "python": ready.get("python"),
                "packages": ready["packages"],
            },
        )
        if ready.get("protocol") != PROTOCOL:
            await self._drop(child)
            raise ProjectError("RUNTIME_OUTDATED")

    async def _running_child(self) -> _Process:
        if self._closed:
            raise ProjectError("SHUTTING_DOWN")
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._child is None or not self._child.alive:
            command = self.spec.command or tuple(own_command("worker", self.spec.name))
            environment = child_environment({**own_environment(), **self.spec.environment})
            try:
                process = await spawn(command, environment=environment)
            except OSError as error:
                log.error(
                    "worker.start_failed", extra={"worker": self.spec.name, "reason": str(error)}
                )
                raise ProjectError("WORKER_CRASHED") from error
            self._child = _Process(process, self.spec)
            log.info("worker.started", extra={"worker": self.spec.name, "worker_pid": process.pid})
            self._on_change()
        return self._child

    async def _cancel(self, child: _Process, request_id: int) -> None:
        """Ask the child to drop the request; end its tree if it doesn't in time."""
        if not child.alive:
            return
        await child.send({"type": "cancel", "id": request_id})
        deadline = asyncio.get_running_loop().time() + CANCEL_GRACE_SECONDS
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                message = await asyncio.wait_for(child.messages.get(), left)
            except TimeoutError:
                break
            if message is None:
                break
            if message.get("id") == request_id and message.get("type") in ("result", "error"):
                return
        await self._drop(child)

    async def _drop(self, child: _Process) -> None:
        if self._child is child:
            self._child = None
        await child.end(grace=0)
        self._on_change()

    async def _report_crash(self, child: _Process) -> None:
        await child.end(grace=0)
        log.error(
            "worker.crashed",
            extra={
                "worker": self.spec.name,
                "exit_code": child.process.returncode,
                "last_words": list(child.stderr)[-3:],
            },
        )
        if self._child is child:
            self._child = None
        self._on_change()

    def _rest(self) -> None:
        if self._child is not None and not self._closed:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self.spec.idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        self._idle = None
        if self._turn.locked() or self._child is None:
            return
        child, self._child = self._child, None
        log.info("worker.idle_ended", extra={"worker": self.spec.name})
        task = asyncio.create_task(child.end(grace=1.0))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        self._on_change()

    async def close(self) -> None:
        """End the child for good."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        child, self._child = self._child, None
        if child is not None:
            await child.end(grace=0.5)
        if self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)


class WorkerPool:
    """All workers of the program, by name."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}

    def add(self, spec: WorkerSpec) -> Worker:
        """Return the worker of this name, making it from *spec* if it isn't there yet."""
        return self._workers.setdefault(spec.name, Worker(spec))

    async def replace(self, spec: WorkerSpec) -> Worker:
        """Return the worker of this name as *spec* has it; one that is started otherwise is ended."""
        worker = self._workers.get(spec.name)
        if worker is not None and worker.spec == spec:
            return worker
        self._workers[spec.name] = Worker(spec)
        if worker is not None:
            await worker.close()
        return self._workers[spec.name]

    def children(self) -> list[ChildProcess]:
        """Return the children that run now."""
        return [
            ChildProcess(worker.pid, f"worker:{name}")
            for name, worker in self._workers.items()
            if worker.pid is not None
        ]

    def kill_all(self) -> None:
        """Kill every worker at once: the last resort of a stop that takes too long."""
        for child in self.children():
            kill_tree(child.pid)

    async def close(self) -> None:
        """End every worker with its process tree."""
        await asyncio.gather(*(worker.close() for worker in self._workers.values()))
