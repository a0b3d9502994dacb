"""What a host asks of its sidecar: requests, uploads, downloads, event streams."""

import json as json_codec
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from host_bridge.event_reader import EventSource, ServerEvent, follow, read_answer
from host_bridge.http_session import ApiResponse, HttpSession
from host_bridge.multipart import encode_upload


class ApiClient(ABC):
    """Speaks to whichever run of a sidecar serves at the moment."""

    def __init__(self, session_token: str, host_token: str, request_timeout: float) -> None:
        self.session_token = session_token
        self.host_token = host_token
        self._request_timeout = request_timeout
        self._stopped = threading.Event()

    @abstractmethod
    def _serving_session(self, timeout: float) -> HttpSession:
        """The session of the run that serves, waiting for one during a restart.

        Raises :class:`SidecarUnavailableError` if there is none in time or will be none.
        """

    def get(self, path: str, **options: Any) -> ApiResponse:
        """GET with the session token; see :meth:`request`."""
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> ApiResponse:
        """POST with the session token; see :meth:`request`."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> ApiResponse:
        """PUT with the session token; see :meth:`request`."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> ApiResponse:
        """PATCH with the session token; see :meth:`request`."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> ApiResponse:
        """DELETE with the session token; see :meth:`request`."""
        return self.request("DELETE", path, **options)

    def host_get(self, path: str, **options: Any) -> ApiResponse:
        """GET with the host token, which alone opens ``/host``."""
        return self.request("GET", path, as_host=True, **options)

    def host_post(self, path: str, **options: Any) -> ApiResponse:
        """POST with the host token, which alone opens ``/host``."""
        return self.request("POST", path, as_host=True, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        as_host: bool = False,
        timeout: float | None = None,
    ) -> ApiResponse:
        """Send a request and give the answer, whatever its status: use ``.check()`` or ``.json()``.

        ``json`` (anything but None) is sent as a JSON body. During a restart the request waits for
        the new run. Raises :class:`SidecarConnectionError`, :class:`SidecarUnavailableError`.
        """
        sent = dict(headers or {})
        if json is not None:
            body = json_codec.dumps(json).encode("utf-8")
            sent["Content-Type"] = "application/json"
        limit = self._request_timeout if timeout is None else timeout
        token = self.host_token if as_host else self.session_token
        session = self._serving_session(limit)
        return session.request(method, path, token=token, headers=sent, body=body, timeout=limit)

    def upload(
        self,
        path: str,
        file: str | os.PathLike[str] | bytes,
        *,
        filename: str | None = None,
        media_type: str = "application/octet-stream",
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """POST a file as the part ``file`` of a multipart form; bytes need a ``filename``."""
        content = file if isinstance(file, bytes) else Path(file)
        name = filename or (content.name if isinstance(content, Path) else "upload")
        content_type, body = encode_upload(
            content, filename=name, media_type=media_type, fields=fields
        )
        sent = {**(headers or {}), "Content-Type": content_type}
        return self.post(path, body=body, headers=sent)

    def download(self, path: str, target: str | os.PathLike[str]) -> int:
        """GET a file with the session token into ``target``; gives its number of bytes."""
        session = self._serving_session(self._request_timeout)
        return session.download(path, Path(target), token=self.session_token)

    def events(
        self, path: str, after: str | int | None = None, *, give_up_after: float = 60.0
    ) -> Generator[ServerEvent, None, None]:
        """Follow a resumable event stream to its end, across broken connections and restarts.

        ``after`` is the sequence to go on behind. Close the generator to stop following. Raises
        :class:`SidecarRequestError`, or :class:`SidecarUnavailableError` after a stop or when the
        stream could not be had for ``give_up_after`` seconds.
        """
        source = EventSource(self._serving_session, self.session_token, self._stopped)
        cursor = None if after is None else str(after)
        return follow(source, path, cursor, give_up_after=give_up_after)

    def answer(self, path: str, *, json: Any) -> Generator[ServerEvent, None, None]:
        """POST JSON and yield the events of a model's answer; close the generator to cancel it.

        Raises :class:`SidecarRequestError` if the request is refused, and
        :class:`SidecarConnectionError` if the connection breaks.
        """
        session = self._serving_session(self._request_timeout)
        body = json_codec.dumps(json).encode("utf-8")
        return read_answer(session, path, token=self.session_token, body=body)
