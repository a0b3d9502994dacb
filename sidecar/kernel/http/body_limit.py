"""How large a request's body may be; counted while it is read, whatever Content-Length claims."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from sidecar.kernel.errors import ProjectError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEBIBYTE: Final = 1024 * 1024
DEFAULT_LIMIT: Final = 2 * MEBIBYTE
# A client that is still sending reads no answer: its body is taken in (and dropped) up to here.
DRAIN_BYTES: Final = 64 * MEBIBYTE
DRAIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The most bytes of a body, and the code for more."""

    size: int = DEFAULT_LIMIT
    code: str = "PAYLOAD_TOO_LARGE"


class BodyTooLarge(HTTPException):
    """Raised out of ``receive``; frameworks let an HTTP exception through unchanged."""

    def __init__(self, limit: BodyLimit) -> None:
        self.project_error = ProjectError(limit.code, details={"limit_bytes": limit.size})
        super().__init__(self.project_error.status)


class BodyLimitMiddleware:
    """Counts bodies. *limits* names the limit of a path or of all paths below it."""

    def __init__(self, app: "ASGIApp", limits: Mapping[str, BodyLimit]) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request on with a ``receive`` that counts."""
        if scope["type"] == "http":
            receive = _counting(receive, limit_of(scope["path"], self._limits))
        await self._app(scope, receive, send)


def limit_of(path: str, limits: Mapping[str, BodyLimit]) -> BodyLimit:
    """Return the limit of the longest prefix of *path*, in whole segments, that has one."""
    while path:
        if path in limits:
            return limits[path]
        path = path.rpartition("/")[0]
    return BodyLimit()


def _counting(receive: "Receive", limit: BodyLimit) -> "Receive":
    seen = 0

    async def counted() -> "Message":
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > limit.size:
                await _drain(receive, message)
                raise BodyTooLarge(limit)
        return message

    return counted


async def _drain(receive: "Receive", message: "Message") -> None:
    drained = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while message["type"] == "http.request" and message.get("more_body", False):
                message = await receive()
                drained += len(message.get("body", b""))
                if drained > DRAIN_BYTES:
                    return
    except TimeoutError:
        return
