"""``sidecar serve``: from the host's first line to the last log line."""

import asyncio
import gc
import importlib
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from host_bridge.protocol import (
    HANDSHAKE_TIMEOUT_SECONDS,
    SHUTDOWN_LIMIT_SECONDS,
    FatalMessage,
    HandshakeInvalid,
    ReadyMessage,
    SessionSettings,
)
from sidecar.kernel.catalogue import FATAL, fatal_text, parse_locale, set_default_locale
from sidecar.kernel.instance_lock import DataDirectoryInUseError, InstanceLock
from sidecar.kernel.lifecycle import HOST_LOST, Lifecycle, StdinLines
from sidecar.kernel.logging import configure_logging, finish_logging, get_logger
from sidecar.kernel.paths import DataDirectoryUnusableError
from sidecar.kernel.redaction import redactor
from sidecar.kernel.settings import Settings, resolve_settings
from sidecar.version import VERSION

log = get_logger(__name__)

# The watchdog acts before the documented limit, so that the limit holds.
WATCHDOG_SECONDS: Final = SHUTDOWN_LIMIT_SECONDS - 2.0
# A dead host's sidecar is gone within 5 s, whatever it was doing.
HOST_LOST_WATCHDOG_SECONDS: Final = 3.5


class StartFailed(Exception):
    """The server can't start; *code* is one of the fatal codes."""

    def __init__(self, code: str, **params: object) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The command line of ``serve``. No token is among it."""

    port: int = 0
    data_dir: Path | None = None
    models_dirs: tuple[Path, ...] = ()


def serve(options: ServeOptions) -> NoReturn:
    """Serve until a stop is asked for, and end the process."""
    # Collecting while everything is imported finds nothing and costs a fifth of the start.
    gc.disable()
    stdout = _private_stdout()
    lines = StdinLines()
    lines.start()
    lock: InstanceLock | None = None
    try:
        # Imported while the host writes its line.
        import_app()
        settings = _read_settings(lines, options)
        lock = _take_data_dir(settings)
        _migrate(settings)
        listener = _bind(settings)
    except StartFailed as failure:
        _fail(stdout, failure, lock)
    except Exception:
        log.exception("serve.start_failed")
        _fail(stdout, StartFailed("START_FAILED"), lock)
    running = _Running(settings, listener, lock, lines, stdout)
    try:
        # Not asyncio.run(): its end waits for threads, and a blocked one must not hold the process.
        asyncio.Runner().run(running.run())
    except Exception:
        log.exception("serve.failed")
        if not running.told_ready:
            _fail(stdout, StartFailed("START_FAILED"), lock)
        lock.release()
        _leave(1)
    _leave(0)


def import_app() -> None:
    """Import the application; what its models need is built when they are used."""
    importlib.import_module("sidecar.kernel.deferral").defer_model_building()
    importlib.import_module("sidecar.app")


def _private_stdout() -> BinaryIO:
    """Keep stdout for the protocol alone: what any library prints to it goes nowhere."""
    private = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return private


def _read_settings(lines: StdinLines, options: ServeOptions) -> Settings:
    configure_logging("info", None)
    line = lines.first_line(HANDSHAKE_TIMEOUT_SECONDS)
    if line is None:
        raise StartFailed("HANDSHAKE_TIMEOUT")
    try:
        session, unknown = SessionSettings.from_line(line)
    except HandshakeInvalid as error:
        log.error("serve.handshake_invalid", extra={"reason": error.reason_key})
        raise StartFailed("HANDSHAKE_INVALID") from None
    set_default_locale(parse_locale(session.locale) or "en")
    settings = resolve_settings(
        session, port=options.port, data_dir=options.data_dir, extra_models=options.models_dirs
    )
    redactor.register(settings.session_token)
    redactor.register(settings.host_token)
    if unknown:
        log.warning("serve.unknown_settings", extra={"count": len(unknown)})
    return settings


def _take_data_dir(settings: Settings) -> InstanceLock:
    lock = InstanceLock(settings.paths.lock)
    try:
        settings.paths.create()
        lock.acquire()
    except DataDirectoryInUseError:
        raise StartFailed("DATA_DIR_IN_USE") from None
    except (DataDirectoryUnusableError, OSError):
        raise StartFailed("DATA_DIR_UNUSABLE") from None
    configure_logging(settings.log_level, settings.paths.logs)
    return lock


def _migrate(settings: Settings) -> None:
    from sidecar.kernel.migrations import (  # noqa: PLC0415 - sqlite3 isn't needed for a bad start
        DatabaseNewerError,
        DatabaseUnreadableError,
        migrate,
    )

    try:
        migrate(settings.paths.database)
    except DatabaseNewerError:
        raise StartFailed("DATABASE_VERSION_UNSUPPORTED") from None
    except DatabaseUnreadableError as error:
        log.error("serve.database_unreadable", extra={"reason": str(error.__cause__)})
        raise StartFailed("DATABASE_CORRUPT") from None


def _bind(settings: Settings) -> socket.socket:
    from sidecar.kernel.http.server import PortInUseError, bind_loopback  # noqa: PLC0415

    try:
        return bind_loopback(settings.port)
    except PortInUseError:
        raise StartFailed("PORT_IN_USE", port=settings.port) from None


def _fail(stdout: BinaryIO, failure: StartFailed, lock: InstanceLock | None) -> NoReturn:
    log.error("serve.fatal", extra={"code": failure.code})
    if lock is not None:
        lock.release()
    stdout.write(
        FatalMessage(failure.code, fatal_text(failure.code, None, **failure.params)).to_line()
    )
    _leave(FATAL[failure.code].exit_code)


def _leave(exit_code: int) -> NoReturn:
    finish_logging()
    # Threads that block in a library must not hold the process.
    os._exit(exit_code)


@dataclass(slots=True)
class _Running:
    settings: Settings
    listener: socket.socket
    lock: InstanceLock
    lines: StdinLines
    stdout: BinaryIO
    told_ready: bool = False

    async def run(self) -> None:
        from sidecar.app import build_asgi  # noqa: PLC0415 - imported by now
        from sidecar.kernel.http.server import HttpServer  # noqa: PLC0415
        from sidecar.services import build_services  # noqa: PLC0415

        lifecycle = Lifecycle(self._start_watchdog)
        lifecycle.watch_signals()
        services = build_services(self.settings)
        services.gate.port = self.listener.getsockname()[1]
        self.lock.write(port=services.gate.port)
        await services.start()
        app = build_asgi(services, lambda: lifecycle.request_stop("request"))
        server = HttpServer(app, lambda: self._tell_ready(services.gate.port))
        serving = asyncio.create_task(server.serve(sockets=[self.listener]), name="http")
        lifecycle.watch_stdin(self.lines)
        if self.settings.host_pid is not None:
            lifecycle.watch_host(self.settings.host_pid)
        background = asyncio.create_task(services.start_background(), name="start-background")
        background.add_done_callback(_log_failure)
        stop = asyncio.create_task(lifecycle.stop_requested.wait(), name="stop-requested")
        # A server that ends by itself has failed; what it raised comes out below.
        await asyncio.wait({stop, serving}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            lifecycle.request_stop("server_ended")

        lifecycle.close()
        background.cancel()
        await services.close()
        server.should_exit = True
        await serving
        await services.close_database()
        self.lock.release()
        log.info("serve.stopped")

    def _tell_ready(self, port: int) -> None:
        settings = self.settings
        ready = ReadyMessage(
            port=port,
            pid=os.getpid(),
            version=VERSION,
            base_url=f"http://127.0.0.1:{port}",
            session_token=settings.session_token if settings.made_session_token else None,
            host_token=settings.host_token if settings.made_host_token else None,
        )
        log.info(
            "serve.ready",
            extra={"port": port, "version": VERSION, "python": sys.version.split()[0]},
        )
        self.told_ready = True
        gc.freeze()
        gc.enable()
        self.stdout.write(ready.to_line())

    def _start_watchdog(self, reason: str) -> None:
        """Bound the stop's time from a thread of its own, since the event loop may hang."""
        seconds = HOST_LOST_WATCHDOG_SECONDS if reason in HOST_LOST else WATCHDOG_SECONDS
        watchdog = threading.Timer(seconds, self._give_up)
        watchdog.daemon = True
        watchdog.start()

    def _give_up(self) -> None:
        from sidecar.kernel.processes import kill_descendants  # noqa: PLC0415 - needed here alone

        log.error("serve.stop_took_too_long")
        kill_descendants()
        self.lock.release()
        _leave(0)


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("serve.background_failed", exc_info=task.exception())
