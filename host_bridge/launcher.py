"""The reference host: start a sidecar, talk to it, watch it, stop it.

    from host_bridge.launcher import launch

    with launch(data_dir="/home/me/.local/share/notes") as sidecar:
        sidecar.host_post("/host/vault", json={"path": "/home/me/Notes"}).check()
        print(sidecar.get("/api/notes").check().json())

What a host in another language must do is what this one does:

* spawn ``<executable> serve`` with three pipes, on Windows with CREATE_NO_WINDOW;
* write one line of settings with two fresh tokens to stdin and **keep stdin open**: the sidecar
  takes its end for the host's death and stops;
* read stdout and stderr until they end, from the beginning, and keep the tail of stderr for the
  message that a user sees when the start fails;
* take port and base URL from the ready line, within a time limit, and talk to 127.0.0.1 directly,
  never through a proxy;
* give the webview the session token only; the host token stays in the host;
* stop by the shutdown line, then close stdin, and end the process tree if that takes too long.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from host_bridge.client import ApiClient
from host_bridge.errors import SidecarStartError, SidecarUnavailableError
from host_bridge.http_session import HttpSession
from host_bridge.process import SidecarProcess
from host_bridge.protocol import (
    SHUTDOWN_LIMIT_SECONDS,
    ReadyMessage,
    SessionSettings,
    new_token,
)
from host_bridge.restart import CrashHistory, CrashReport, RestartPolicy

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

Executable = str | os.PathLike[str] | Sequence[str]


def launch(  # noqa: PLR0913 - each is a setting of its own that most hosts leave alone
    executable: Executable | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    vault_path: str | os.PathLike[str] | None = None,
    locale: str | None = None,
    log_level: str | None = None,
    extra_args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    ready_timeout: float = 30.0,
    request_timeout: float = 60.0,
    restart: RestartPolicy | None = None,
    on_crash: Callable[[CrashReport], None] | None = None,
    on_restart: Callable[["Sidecar"], None] | None = None,
) -> "Sidecar":
    """Start a sidecar and return once it is ready.

    ``executable`` is a path, or a command in parts; by default the sidecar of this Python. Both
    folders are optional and are told in the first line. ``extra_args`` follow ``serve``. With a
    ``restart`` policy a crashed sidecar is started again with the same tokens, usually on another
    port. ``on_crash`` and ``on_restart`` are called on a thread of the launcher.

    Raises :class:`SidecarStartError`, or its subclass :class:`SidecarTimeoutError`.
    """
    settings = SessionSettings(
        session_token=new_token(),
        host_token=new_token(),
        host_pid=os.getpid(),
        locale=locale,
        data_dir=None if data_dir is None else str(Path(data_dir).absolute()),
        vault_path=None if vault_path is None else str(Path(vault_path).absolute()),
        log_level=log_level,
    )
    sidecar = Sidecar(
        [*_command(executable), "serve", *extra_args],
        settings,
        env=env,
        ready_timeout=ready_timeout,
        request_timeout=request_timeout,
        restart=restart,
        on_crash=on_crash,
        on_restart=on_restart,
    )
    sidecar.start()
    return sidecar


class Sidecar(ApiClient):
    """A running sidecar, across its restarts. Safe to use from several threads."""

    def __init__(
        self,
        command: Sequence[str],
        settings: SessionSettings,
        *,
        env: Mapping[str, str] | None,
        ready_timeout: float,
        request_timeout: float,
        restart: RestartPolicy | None,
        on_crash: Callable[[CrashReport], None] | None,
        on_restart: Callable[["Sidecar"], None] | None,
    ) -> None:
        if settings.session_token is None or settings.host_token is None:
            raise ValueError("the launcher needs both tokens")
        super().__init__(settings.session_token, settings.host_token, request_timeout)
        self.command = tuple(command)
        self._settings = settings
        self._env = env
        self._ready_timeout = ready_timeout
        self._policy = restart
        self._on_crash = on_crash
        self._on_restart = on_restart
        self._changed = threading.Condition()
        self._lost = False
        self._process: SidecarProcess | None = None
        self._ready: ReadyMessage | None = None
        self._session: HttpSession | None = None
        self._watcher: threading.Thread | None = None

    # --- what it is -----------------------------------------------------------------------------

    @property
    def ready(self) -> ReadyMessage:
        """The ready line of the run that serves now; :class:`SidecarUnavailableError` if none."""
        with self._changed:
            if self._ready is None:
                raise SidecarUnavailableError("no sidecar serves")
            return self._ready

    @property
    def port(self) -> int:
        """The port of the run that serves now."""
        return self.ready.port

    @property
    def pid(self) -> int:
        """The serving process."""
        return self.ready.pid

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:<port>``; changes with a restart."""
        return self.ready.base_url

    @property
    def version(self) -> str:
        """The sidecar's version."""
        return self.ready.version

    @property
    def process(self) -> SidecarProcess:
        """The newest run, also after its end: exit status, log tail, times."""
        if self._process is None:
            raise SidecarUnavailableError("the sidecar was never started")
        return self._process

    def log_tail(self) -> str:
        """The last 8 KiB that the newest run wrote to stderr."""
        return self.process.log_tail()

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it; :func:`launch` does so. Raises :class:`SidecarStartError`."""
        if self._watcher is not None:
            raise RuntimeError("a Sidecar is started once")
        process = self._run_once()
        self._watcher = threading.Thread(
            target=self._watch, args=(process,), name="sidecar-watch", daemon=True
        )
        self._watcher.start()

    def wait_until_serving(self, timeout: float) -> None:
        """Wait for a run that serves, which after a crash is the next one.

        Raises :class:`SidecarUnavailableError` if there is none in time or will be none.
        """
        self._serving_session(timeout)

    def stop(self, limit: float = SHUTDOWN_LIMIT_SECONDS) -> int:
        """Stop it gracefully, and by force after ``limit`` seconds. Gives the exit status.

        May be called again, and from several threads: each call gives the same status. A restart
        that is under way is given up.
        """
        self._stopped.set()
        with self._changed:
            process = self.process
            self._retire()
        exit_code = process.stop(limit)
        watcher = self._watcher
        if watcher is not None and watcher is not threading.current_thread():
            watcher.join()
        # The watcher may have had a run in its hands that was not announced yet.
        return exit_code if self.process is process else self.process.stop(limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run_once(self) -> SidecarProcess:
        process = SidecarProcess(self.command, self._settings, self._env)
        with self._changed:
            self._process = process
        if self._stopped.is_set():
            process.stop()  # The stop came while the program was being started.
        ready = process.wait_until_ready(self._ready_timeout)
        with self._changed:
            if not self._stopped.is_set():
                self._ready = ready
                self._session = HttpSession(ready.port, self._request_timeout)
                self._changed.notify_all()
        return process

    def _retire(self) -> None:
        """Forget the run that served. Called with the lock held."""
        if self._session is not None:
            self._session.close()
        self._ready = self._session = None
        self._changed.notify_all()

    def _serving_session(self, timeout: float) -> HttpSession:
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._session is None:
                if self._stopped.is_set():
                    raise SidecarUnavailableError("the sidecar was stopped")
                if self._lost:
                    raise SidecarUnavailableError("the sidecar crashed and is not started again")
                if not self._changed.wait(deadline - time.monotonic()):
                    raise SidecarUnavailableError(f"no sidecar serves after {timeout:g} s")
            return self._session

    def _watch(self, process: SidecarProcess) -> None:
        history = None if self._policy is None else CrashHistory(self._policy)
        current: SidecarProcess | None = process
        while current is not None:
            exit_code = current.wait()
            served = time.monotonic() - current.started_at
            with self._changed:
                if self._stopped.is_set():
                    return
                self._retire()
            current.kill()  # It has ended; this reaps it and lets its pipes run dry.
            current = self._restart(
                history, CrashReport("EXITED", exit_code, current.log_tail(), None), served
            )

    def _restart(
        self, history: CrashHistory | None, crash: CrashReport, served: float
    ) -> SidecarProcess | None:
        """Try until a run serves; None after a stop or when the policy gives up."""
        while True:
            delay = None if history is None else history.next_delay(served)
            report = CrashReport(crash.reason, crash.exit_code, crash.log_tail, delay)
            if delay is None:
                with self._changed:
                    self._lost = True
                    self._changed.notify_all()
            _notify(self._on_crash, report)
            if delay is None or self._stopped.wait(delay):
                return None
            try:
                process = self._run_once()
            except SidecarStartError as error:
                if self._stopped.is_set():
                    return None
                crash = CrashReport(error.code, error.exit_code, error.log_tail, None)
                served = 0.0
                continue
            if not self._stopped.is_set():
                _notify(self._on_restart, self)
            return process


def _notify(callback: Callable[[_T], None] | None, argument: _T) -> None:
    """Call the host's callback; its failure is logged and must not end the watch."""
    if callback is None:
        return
    try:
        callback(argument)
    except Exception:  # noqa: BLE001 - the host's code may raise anything
        _log.exception("a callback of the host failed")


def _command(executable: Executable | None) -> list[str]:
    if executable is None:
        # A frozen program is its own interpreter and knows no -m.
        frozen = getattr(sys, "frozen", False)
        return [sys.executable] if frozen else [sys.executable, "-m", "sidecar"]
    if isinstance(executable, str | os.PathLike):
        return [os.fspath(executable)]
    return list(executable)
