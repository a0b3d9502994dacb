"""The one place from which requests to providers leave.

Redirects are never followed, so that a key goes to the address that it is for and to no other. Proxies
and certificate authorities come from the settings, and where these say nothing, from the environment
(``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``); servers on this machine are asked directly.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.kernel.network_settings import Network, is_this_machine
from sidecar.kernel.outbound_http import USER_AGENT, OutboundError, way_out
from sidecar.providers.failures import UpstreamError, failure_of_answer

if TYPE_CHECKING:
    import httpx

log = get_logger(__name__)

# An error's page is looked at for its meaning, never kept.
_ERROR_BYTES: Final = 64 * 1024
ANSWER_BYTES: Final = 64 * 1024 * 1024
"""The largest answer that is taken, streamed or not."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a provider may take, in seconds."""

    connect: float = 10.0
    first_byte: float = 180.0
    """From the request to the first byte of the answer's body; a model reads a long prompt first."""
    silence: float = 90.0
    """Between two pieces of a streamed answer."""
    whole: float = 600.0
    """For an answer that comes in one piece."""


DEFAULT_TIMEOUTS: Final = Timeouts()


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider as a request needs it."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What authorises the request."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Safe facts for the details of an error: ``provider_id``, ``model``."""
    network: Network = field(default_factory=Network, repr=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file of a multipart request."""

    file_name: str
    content: bytes | IO[bytes]
    mime_type: str


class UpstreamAnswer:
    """A streamed answer with status 2xx whose body is still to be read."""

    def __init__(
        self, response: "httpx.Response", upstream: Upstream, timeouts: Timeouts, began: float
    ) -> None:
        self._response = response
        self._about = upstream.about
        self._timeouts = timeouts
        self._first_until = began + timeouts.first_byte
        self.content_type = (
            response.headers.get("content-type", "").partition(";")[0].strip().lower()
        )

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes.

        Raises ``PROVIDER_TIMEOUT`` for silence, ``PROVIDER_STREAM_TRUNCATED`` for a connection that
        breaks, ``PROVIDER_INVALID_RESPONSE`` for a body without end.
        """
        body = self._response.aiter_bytes()
        limit, total = asyncio.timeout_at(self._first_until), 0
        while True:
            try:
                async with limit:
                    chunk = await anext(body, None)
            except TimeoutError:
                raise UpstreamError("PROVIDER_TIMEOUT", dict(self._about)) from None
            except Exception as error:
                raise _failure_of_body(error, self._about, streamed=True) from error
            if chunk is None:
                return
            total += len(chunk)
            if total > ANSWER_BYTES:
                raise UpstreamError("PROVIDER_INVALID_RESPONSE", dict(self._about))
            yield chunk
            limit = asyncio.timeout(self._timeouts.silence)

    async def json(self) -> Any:
        """Return the whole body as JSON; raises as :meth:`chunks` does."""
        content = b"".join([chunk async for chunk in self.chunks()])
        return _json_of(content, self.content_type, self._about)


class Transport:
    """Pools of connections, made when they are first needed."""

    def __init__(self, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> None:
        self.timeouts = timeouts
        self._clients: dict[tuple[Network, bool], httpx.AsyncClient] = {}
        self._making = asyncio.Lock()

    async def get_json(self, upstream: Upstream, path: str, *, seconds: float | None = None) -> Any:
        """GET *path* below the base address and return its JSON.

        Raises :class:`UpstreamError` (a :class:`ProjectError`) for whatever goes wrong.
        """
        return await self._whole("GET", upstream, path, {}, seconds)

    async def post_json(
        self, upstream: Upstream, path: str, body: Any, *, seconds: float | None = None
    ) -> Any:
        """POST *body* as JSON and return the JSON of the answer; raises as :meth:`get_json`."""
        return await self._whole("POST", upstream, path, _json_request(body), seconds)

    async def post_multipart(
        self,
        upstream: Upstream,
        path: str,
        fields: Mapping[str, str | list[str]],
        files: Mapping[str, FilePart],
        *,
        seconds: float | None = None,
    ) -> Any:
        """POST a form with files and return the JSON of the answer; raises as :meth:`get_json`.

        A field with several values is sent once for each.
        """
        parts = {
            name: (part.file_name, part.content, part.mime_type) for name, part in files.items()
        }
        form = {"data": dict(fields), "files": parts}
        return await self._whole("POST", upstream, path, form, seconds)

    @asynccontextmanager
    async def stream(
        self, upstream: Upstream, path: str, body: Any
    ) -> AsyncIterator[UpstreamAnswer]:
        """POST *body* as JSON and give the answer once its head is there; closing it hangs up.

        Raises :class:`UpstreamError` for an answer with an error's status.
        """
        began = asyncio.get_running_loop().time()
        limit = self.timeouts.first_byte
        request = _json_request(body)
        async with self._answered("POST", upstream, path, request, limit) as response:
            yield UpstreamAnswer(response, upstream, self.timeouts, began)

    async def close(self) -> None:
        """Close the connections."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()

    async def _whole(
        self,
        method: str,
        upstream: Upstream,
        path: str,
        request: dict[str, Any],
        seconds: float | None,
    ) -> Any:
        limit = seconds or self.timeouts.whole
        try:
            async with (
                asyncio.timeout(limit),
                self._answered(method, upstream, path, request, limit) as response,
            ):
                try:
                    content = await _read(response, ANSWER_BYTES)
                except Exception as error:
                    raise _failure_of_body(error, upstream.about, streamed=False) from error
                if content is None:
                    raise UpstreamError("PROVIDER_INVALID_RESPONSE", dict(upstream.about))
                content_type = response.headers.get("content-type", "")
                return _json_of(content, content_type, upstream.about)
        except TimeoutError:
            raise UpstreamError("PROVIDER_TIMEOUT", dict(upstream.about)) from None

    @asynccontextmanager
    async def _answered(
        self,
        method: str,
        upstream: Upstream,
        path: str,
        request: dict[str, Any],
        seconds: float,
    ) -> AsyncGenerator["httpx.Response", None]:
        """Give the answer to a request if it is of status 2xx, its body unread."""
        client = await self._client(upstream)
        url = upstream.base_url.rstrip("/") + path
        headers = {**request.pop("headers", {}), **upstream.headers}
        with _translated(upstream.about):
            async with asyncio.timeout(seconds):
                response = await _send(client, method, url, headers, request)
        try:
            if not response.is_success:
                raise await self._refusal(response, upstream)
            yield response
        finally:
            await response.aclose()

    async def _refusal(self, response: "httpx.Response", upstream: Upstream) -> UpstreamError:
        body: Any = None
        # The status is known; a body that doesn't come, or not as it should, adds nothing.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(self.timeouts.connect):
                content = await _read(response, _ERROR_BYTES) or b""
            body = content.decode("utf-8", "replace")
            body = json.loads(body)
        failure = failure_of_answer(response.status_code, response.headers, body, upstream.about)
        log.info(
            "provider.refused",
            extra={"code": failure.code, "status": response.status_code, **upstream.about},
        )
        return failure

    async def _client(self, upstream: Upstream) -> "httpx.AsyncClient":
        direct = is_this_machine(upstream.base_url)
        key = (upstream.network, direct)
        if key not in self._clients:
            async with self._making:
                if key not in self._clients:
                    # Reading the authorities and importing the library takes a tenth of a second.
                    self._clients[key] = await asyncio.to_thread(
                        _make_client, upstream, direct, self.timeouts
                    )
        return self._clients[key]


async def _send(
    client: "httpx.AsyncClient",
    method: str,
    url: str,
    headers: Mapping[str, str],
    request: Mapping[str, Any],
) -> "httpx.Response":
    """Send a request; once more if it met a connection that the server was closing just then.

    A server may end a kept connection at any moment. If it does so without a byte of an answer, the
    request was not taken up, and clients send it again whatever its method is. A connection that was
    made for the request is another matter: there the server may have begun.
    """
    import httpx  # noqa: PLC0415

    while True:
        connected = False

        async def watch(event: str, _: Mapping[str, Any]) -> None:
            nonlocal connected
            connected = connected or event.startswith("connection.connect_")

        built = client.build_request(
            method, url, headers=headers, extensions={"trace": watch}, **request
        )
        try:
            return await client.send(built, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            garbled = isinstance(error, httpx.RemoteProtocolError) and not _hung_up(error)
            if connected or garbled:
                raise
            # This connection is gone from the pool by now, so that the loop ends at a new one.
            log.info("provider.connection_was_closed")


def _hung_up(error: "httpx.RemoteProtocolError") -> bool:
    return "disconnected" in str(error)


def _make_client(upstream: Upstream, direct: bool, timeouts: Timeouts) -> "httpx.AsyncClient":
    import http.cookiejar  # noqa: PLC0415

    import httpx  # noqa: PLC0415

    try:
        way = way_out(upstream.network, direct=direct)
    except OutboundError as error:
        log.error("provider.ca_file_unusable", extra={"reason": error.reason})
        raise UpstreamError("PROVIDER_UNAVAILABLE", dict(upstream.about)) from error
    try:
        client = httpx.AsyncClient(
            **way,
            # The waits for an answer are measured here, by their phases.
            timeout=httpx.Timeout(None, connect=timeouts.connect, write=60.0),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=40, keepalive_expiry=30
            ),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
        )
    except (ValueError, httpx.InvalidURL) as error:
        log.error("provider.proxy_unusable", extra={"reason": type(error).__name__})
        raise UpstreamError("PROVIDER_UNAVAILABLE", dict(upstream.about)) from error
    # Two providers at one address are two accounts.
    client.cookies.jar.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    return client


def _json_request(body: Any) -> dict[str, Any]:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    # A text may hold half a character; nobody could read it on the other side.
    content = text.encode("utf-8", "replace")
    return {"content": content, "headers": {"Content-Type": "application/json"}}


async def _read(response: "httpx.Response", limit: int) -> bytes | None:
    """Return the whole body, None if it is longer than *limit*."""
    parts, total = [], 0
    async for chunk in response.aiter_bytes():
        total += len(chunk)
        if total > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)


def _json_of(content: bytes, content_type: str, about: Mapping[str, Any]) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        is_json = "json" in content_type
        code = "PROVIDER_INVALID_RESPONSE" if is_json else "PROVIDER_PROTOCOL_ERROR"
        raise UpstreamError(code, dict(about)) from error


@contextlib.contextmanager
def _translated(about: Mapping[str, Any]) -> Iterator[None]:
    """Turn what goes wrong before the head of an answer is there into a project error."""
    import httpx  # noqa: PLC0415

    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        # A connection that wasn't made carried no request.
        not_begun = isinstance(error, httpx.ConnectTimeout)
        raise UpstreamError("PROVIDER_TIMEOUT", dict(about), not_begun=not_begun) from error
    except httpx.ConnectError as error:
        raise UpstreamError("PROVIDER_UNAVAILABLE", dict(about), not_begun=True) from error
    except (httpx.RemoteProtocolError, httpx.NetworkError, httpx.ProxyError) as error:
        garbled = isinstance(error, httpx.RemoteProtocolError) and not _hung_up(error)
        code = "PROVIDER_PROTOCOL_ERROR" if garbled else "PROVIDER_UNAVAILABLE"
        raise UpstreamError(code, dict(about)) from error
    except UnicodeEncodeError as error:
        # Headers are ASCII: this key was never one.
        raise UpstreamError("PROVIDER_AUTH_FAILED", dict(about)) from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise UpstreamError("PROVIDER_PROTOCOL_ERROR", dict(about)) from error


def _failure_of_body(error: Exception, about: Mapping[str, Any], *, streamed: bool) -> ProjectError:
    import httpx  # noqa: PLC0415

    if isinstance(error, ProjectError):
        return error
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return UpstreamError("PROVIDER_TIMEOUT", dict(about))
    if isinstance(error, httpx.DecodingError):
        return UpstreamError("PROVIDER_PROTOCOL_ERROR", dict(about))
    code = "PROVIDER_STREAM_TRUNCATED" if streamed else "PROVIDER_INVALID_RESPONSE"
    return UpstreamError(code, dict(about))
