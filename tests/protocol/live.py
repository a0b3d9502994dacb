"""The whole application on a thread of its own, for tests that are plain functions."""

import asyncio
import concurrent.futures
import contextlib
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import httpx
from fastapi import FastAPI

from sidecar.kernel.database import Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import StoredEvent
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.logging import JsonFormatter
from sidecar.services import Services
from tests.app_client import RunningApp, running_app

T = TypeVar("T")

WAIT_SECONDS: Final = 60.0
TERMINAL: Final = ("completed", "failed", "cancelled")


def eventually(check: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS) -> T:
    """Wait until *check* returns something true and return it; an AssertionError if it doesn't."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := check()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        pause.wait(0.01)
    return found


class _Lines(logging.Handler):
    """Keeps what the application logs, as it would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def _note_moves(tx: Transaction) -> None:
    """Make the database itself note each change of a job's status."""
    tx.execute("CREATE TABLE IF NOT EXISTS job_moves (job_id TEXT, before TEXT, after TEXT)")
    tx.execute(
        "CREATE TRIGGER IF NOT EXISTS note_move AFTER UPDATE OF status ON jobs"
        " WHEN OLD.status <> NEW.status"
        " BEGIN INSERT INTO job_moves VALUES (NEW.job_id, OLD.status, NEW.status); END"
    )


def client_of(base_url: str, token: str | None) -> httpx.Client:
    """Return a client that sends a token, or none."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=base_url, headers=headers, timeout=WAIT_SECONDS, trust_env=False)


class AppClients:
    """What a request's preparation needs of an application, wherever that runs."""

    session: httpx.Client
    host: httpx.Client

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, Any] = {}

    @property
    def vault(self) -> Path:
        """The open vault."""
        return self.folder / "vault"

    def once(self, key: str, make: Callable[[Self], T]) -> T:
        """Return what *make* made when it was first asked for under this key."""
        if key not in self._made:
            self._made[key] = make(self)
        made: T = self._made[key]
        return made

    def job_ended(self, path: str) -> dict[str, Any]:
        """Wait until the job at *path* has ended and return it."""

        def ended() -> dict[str, Any] | None:
            job: dict[str, Any] = self.session.get(path).raise_for_status().json()
            return job if job["status"] in TERMINAL else None

        return eventually(ended, f"the end of {path}")


class LiveApp(AppClients):
    """The running application, its clients, and what the tests keep of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._stop: asyncio.Event | None = None
        self._ready: concurrent.futures.Future[RunningApp] = concurrent.futures.Future()
        self._log = _Lines()
        root = logging.getLogger()
        root.addHandler(self._log)
        self._thread = threading.Thread(target=self._run, name="live-app")
        self._thread.start()
        try:
            self.app = self._ready.result(WAIT_SECONDS)
        except BaseException:
            root.removeHandler(self._log)
            raise
        self.session = self._client(self.app.session_token)
        self.host = self._client(self.app.host_token)
        self.anonymous = self._client(None)

    def _client(self, token: str | None) -> httpx.Client:
        return client_of(self.app.base_url, token)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        async with running_app(self.folder) as app:
            await app.services.database.write(_note_moves)
            self._ready.set_result(app)
            await self._stop.wait()

    def stop(self) -> None:
        """Stop as the program does, and wait for the end."""
        if self._thread.is_alive():
            for client in (self.session, self.host, self.anonymous):
                client.close()
            assert self._stop is not None
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(WAIT_SECONDS)
            assert not self._thread.is_alive(), "the application doesn't stop"
            logging.getLogger().removeHandler(self._log)

    @property
    def api(self) -> FastAPI:
        """The routes, inside the layers that check requests first."""
        layer: Any = self.app.asgi
        while not isinstance(layer, FastAPI):
            layer = layer._app
        return layer

    @property
    def services(self) -> Services:
        """The application's services; use them through :meth:`call`."""
        return self.app.services

    @property
    def data_dir(self) -> Path:
        """The folder with the application's data."""
        return self.app.data_dir

    @property
    def secrets(self) -> tuple[str, str]:
        """The two tokens."""
        return self.app.session_token, self.app.host_token

    @property
    def log_text(self) -> str:
        """Everything that was logged so far."""
        return "\n".join(self._log.lines)

    def call(self, coroutine: Coroutine[Any, Any, T], seconds: float = WAIT_SECONDS) -> T:
        """Run a coroutine in the application's event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)

    def follow(self, resource_id: str) -> concurrent.futures.Future[StoredEvent]:
        """Return what becomes the terminal event of a resource, as soon as a follower gets it."""

        async def last() -> StoredEvent:
            events: list[StoredEvent] = []
            async with contextlib.aclosing(self.services.events.subscribe(resource_id)) as batches:
                async for batch in batches:
                    events += batch
            return events[-1]

        return asyncio.run_coroutine_threadsafe(last(), self._loop)

    def job_moves(self) -> list[tuple[str, str, str]]:
        """Every change of a job's status so far: the job, its status before and after."""

        def read(conn: sqlite3.Connection) -> list[tuple[str, str, str]]:
            return [tuple(row) for row in conn.execute("SELECT * FROM job_moves ORDER BY rowid")]

        return self.call(self.services.database.read(read))

    @contextlib.contextmanager
    def holding(
        self, kind_name: str, *, stubborn: bool = False, **changes: Any
    ) -> Iterator["Hold"]:
        """Make jobs of a kind wait, running, instead of doing their work; *changes* alter the kind.

        Stubborn ones heed a cancel only once they are released. Jobs that still wait at the end are
        cancelled.
        """
        hold = Hold(self, self.services.jobs.kinds[kind_name], changes, stubborn=stubborn)
        try:
            yield hold
        finally:
            hold.end()

    def held_job(self, kind_name: str, create: Callable[[], httpx.Response]) -> str:
        """Return the id of a new job that runs until it is cancelled."""
        hold = Hold(self, self.services.jobs.kinds[kind_name], {})
        try:
            job_id: str = create().raise_for_status().json()["job_id"]
            hold.running(job_id)
        finally:
            hold.give_back()
        return job_id


class Hold:
    """Jobs of one kind whose work waits for a word of the test."""

    def __init__(
        self, app: LiveApp, kind: JobKind, changes: dict[str, Any], *, stubborn: bool = False
    ) -> None:
        self._app = app
        self._kind = kind
        self._stubborn = stubborn
        self.contexts: dict[str, JobContext] = {}
        self._verdicts: dict[str, asyncio.Future[Exception | JobOutcome | None]] = {}
        app.call(self._replace(replace(kind, run=self._run, **changes)))

    async def _replace(self, kind: JobKind) -> None:
        self._app.services.jobs._kinds[kind.name] = kind

    async def _run(self, context: JobContext) -> JobOutcome:
        job_id = context.job.job_id
        verdict = self._verdicts[job_id] = asyncio.get_running_loop().create_future()
        self.contexts[job_id] = context
        try:
            given = await asyncio.shield(verdict)
        except asyncio.CancelledError:
            if self._stubborn:
                await verdict
            raise
        if isinstance(given, Exception):
            raise given
        return given if given is not None else await self._kind.run(context)

    def running(self, job_id: str) -> JobContext:
        """Wait until a job runs and return its context."""
        return eventually(lambda: self.contexts.get(job_id), f"{job_id} runs")

    def release(self, job_id: str, verdict: Exception | JobOutcome | None = None) -> None:
        """Let a job go on: with its real work, with an outcome, or with a failure."""
        self.running(job_id)
        self._app.call(self._decide(job_id, verdict))

    async def _decide(self, job_id: str, verdict: Exception | JobOutcome | None) -> None:
        if not self._verdicts[job_id].done():
            self._verdicts[job_id].set_result(verdict)

    def end(self) -> None:
        """Cancel what still waits and give the kind its own work back."""
        engine: JobEngine = self._app.services.jobs

        async def cancel_all() -> None:
            for job in await self._app.services.database.write(job_store.unfinished):
                if job.kind == self._kind.name:
                    # It may end by itself before its turn comes.
                    with contextlib.suppress(ProjectError):
                        await engine.cancel(job.kind, job.job_id)

        self._app.call(cancel_all())
        eventually(lambda: not self._app.call(self._busy()), "the held jobs' end")
        self.give_back()

    def give_back(self) -> None:
        """Give the kind its own work back; what runs by now goes on waiting."""
        self._app.call(self._replace(self._kind))

    async def _busy(self) -> bool:
        engine = self._app.services.jobs
        return bool(engine._waiting[self._kind.name] or engine._running[self._kind.name])


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the error of an answer, which must have the one shape."""
    assert answer.headers["content-type"] == "application/json", answer.text
    body = json.loads(answer.content.decode("utf-8"))
    assert set(body) == {"error"}, body
    error: dict[str, Any] = body["error"]
    assert set(error) == {"code", "message", "details"}, error
    assert isinstance(error["code"], str) and error["code"] == error["code"].upper()
    assert isinstance(error["message"], str) and error["message"]
    assert isinstance(error["details"], dict)
    return error
