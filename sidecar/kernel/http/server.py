"""The HTTP server: uvicorn, told to leave signals, logs and its end to us."""

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

# uvicorn's package imports what it needs to watch source files, which costs a start some 30 ms and
# is never used here. A module that is None can't be imported, and uvicorn does without it.
sys.modules.setdefault("uvicorn.supervisors.watchfilesreload", None)  # type: ignore[arg-type]

import uvicorn  # noqa: E402 - after the line above

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOOPBACK: Final = "127.0.0.1"
KEEP_ALIVE_SECONDS: Final = 75
GRACE_SECONDS: Final = 2


class PortInUseError(Exception):
    """Something else listens on the port that was asked for."""


def bind_loopback(port: int) -> socket.socket:
    """Return a listening socket on 127.0.0.1; port 0 lets the system choose.

    Raises :class:`PortInUseError`.
    """
    # With the protocol named, asyncio turns off Nagle's algorithm; without it, each keep-alive
    # request waits some 40 ms for a delayed acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            # Connections of an earlier run that still wind down don't hold the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        raise PortInUseError from error
    return listener


class HttpServer(uvicorn.Server):
    """Serves one application on one socket until :attr:`should_exit` is set."""

    def __init__(self, app: "ASGIApp", on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                http="h11",
                ws="none",
                loop="asyncio",
                lifespan="off",
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, then tell."""
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: uvicorn would raise them again after its end."""
        yield
