"""Requests to a sidecar on this machine over kept-alive connections."""

import http.client
import json as json_codec
import select
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from host_bridge.errors import SidecarConnectionError, SidecarRequestError

# The server closes a connection that was idle for a few seconds; one that is younger is safe.
_REUSE_SECONDS = 3.0
_COPY_BYTES = 1 << 20
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An answer that was read to its end."""

    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode("utf-8")

    def json(self) -> Any:
        """The body as JSON; ValueError if it is none."""
        return json_codec.loads(self.body)

    def check(self, *expected: int) -> "ApiResponse":
        """Give the answer itself if its status is expected (none named: any 2xx).

        Raises :class:`SidecarRequestError` with the code of the error object.
        """
        if self.status in expected or (not expected and 200 <= self.status < 300):
            return self
        raise request_error(self.status, self.body)


def request_error(status: int, body: bytes) -> SidecarRequestError:
    """The error that an answer's body tells of."""
    try:
        error = json_codec.loads(body)["error"]
        return SidecarRequestError(status, error["code"], error["message"], error.get("details"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return SidecarRequestError(status, "", body[:200].decode("utf-8", "replace"))


class HttpSession:
    """A pool of connections to ``127.0.0.1:port``; safe to use from several threads.

    It speaks to the address directly: proxy settings of the system or the environment have no say.
    """

    def __init__(self, port: int, timeout: float) -> None:
        self.port = port
        self.timeout = timeout
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._lock = threading.Lock()
        self._closed = False

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> ApiResponse:
        """Send a request and read the whole answer, whatever its status.

        A request is repeated only where that cannot do its work twice. Raises
        :class:`SidecarConnectionError`.
        """
        connection, response = self.open(
            method, path, token=token, headers=headers, body=body, timeout=timeout
        )
        try:
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise connection_error(error) from error
        self._give_back(connection, response)
        return ApiResponse(response.status, response.headers, content)

    def download(self, path: str, target: Path, *, token: str | None) -> int:
        """Write the body of a GET to ``target`` piece by piece; gives the number of bytes.

        Raises :class:`SidecarRequestError` for an error status, :class:`SidecarConnectionError`.
        """
        connection, response = self.open("GET", path, token=token)
        size = 0
        try:
            if response.status != http.client.OK:
                raise request_error(response.status, response.read())
            with target.open("wb") as file:
                while chunk := response.read(_COPY_BYTES):
                    size += file.write(chunk)
        except (OSError, http.client.HTTPException) as error:
            raise connection_error(error) from error
        finally:
            connection.close()
        return size

    def open(
        self,
        method: str,
        path: str,
        *,
        token: str | None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request and read the answer's head; the caller reads the rest and closes.

        Raises :class:`SidecarConnectionError`.
        """
        limit = self.timeout if timeout is None else timeout
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection, reused = self._take(limit)
        try:
            try:
                return connection, _exchange(connection, method, path, body, sent)
            except (http.client.RemoteDisconnected, ConnectionError):
                connection.close()
                # The server closed a kept-alive connection just as we used it. Whether it saw
                # the request is unknown, so only what changes nothing is sent again.
                if not reused or method not in _SAFE_METHODS:
                    raise
                connection = self._connect(limit)
                return connection, _exchange(connection, method, path, body, sent)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise connection_error(error) from error

    def close(self) -> None:
        """Close the idle connections; those in use are closed after their request."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _take(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, since = self._idle.pop()
            if time.monotonic() - since < _REUSE_SECONDS and _is_quiet(connection.sock):
                connection.timeout = timeout
                connection.sock.settimeout(timeout)
                return connection, True
            connection.close()
        return self._connect(timeout), False

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def _give_back(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        with self._lock:
            if not self._closed and connection.sock is not None and not response.will_close:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


def connection_error(error: Exception) -> SidecarConnectionError:
    """The project's error for one of the socket or of the HTTP client."""
    return SidecarConnectionError(f"connection to the sidecar failed: {error!r}")


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> http.client.HTTPResponse:
    connection.request(method, path, body=body, headers=headers)
    return connection.getresponse()


def _is_quiet(sock: socket.socket) -> bool:
    """Whether nothing waits to be read: between requests that can only be the server's goodbye."""
    readable, _, _ = select.select([sock], [], [], 0)
    return not readable
