"""The client for everything that the program fetches from elsewhere.

Redirects are followed here and not by the library: a credential is sent to the place that it is for
and to no other, and only ``https`` may follow on ``https``. Bodies are read as they were sent, so
that a compressed bomb stays as small as it is.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sidecar.kernel.network_settings import Network, is_this_machine
from sidecar.version import VERSION

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 30.0
MOST_REDIRECTS: Final = 5
# As much as an event loop hands over at once. The library asks for a quarter of it, and so takes half as long again
# for a large file.
READ_BYTES: Final = 256 * 1024
USER_AGENT: Final = f"NotesAgent-Sidecar/{VERSION}"


class OutboundError(Exception):
    """The other side can't be reached, fell silent, or broke the protocol. ``reason`` is a word for logs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer whose body isn't read yet, and the headers of the redirects that led to it."""

    response: "httpx.Response"
    redirects: tuple["httpx.Headers", ...] = ()

    def header(self, name: str) -> str | None:
        """Return a header of the first answer that has it, from the place that was asked on."""
        for headers in (*self.redirects, self.response.headers):
            if name in headers:
                return str(headers[name])
        return None


class OutboundHttp:
    """One pool of connections. Safe to make before it is needed: the library is loaded at first use."""

    def __init__(
        self,
        network: Network | None = None,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._network = network or Network()
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._clients: dict[bool, httpx.AsyncClient] = {}

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        credential: str | None = None,
    ) -> AsyncIterator[Exchange]:
        """GET *url* and follow redirects; *credential* is a bearer token for the origin of *url* alone.

        Raises :class:`OutboundError` for whatever goes wrong below the answer's status, in the body
        too.
        """
        import httpx  # noqa: PLC0415 - takes a tenth of a second

        origin = _origin(url)
        passed: list[httpx.Headers] = []
        try:
            while True:
                sent = {"Accept-Encoding": "identity", **(headers or {})}
                if credential and _origin(url) == origin:
                    sent["Authorization"] = f"Bearer {credential}"
                async with self._client_for(url).stream("GET", url, headers=sent) as response:
                    if not response.has_redirect_location:
                        yield Exchange(response, tuple(passed))
                        return
                    passed.append(response.headers)
                    url = _next_url(url, response, len(passed))
        except httpx.TimeoutException as error:
            raise OutboundError("timeout") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OutboundError(type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    def _client_for(self, url: str) -> "httpx.AsyncClient":
        direct = is_this_machine(url)
        if direct not in self._clients:
            import httpcore  # noqa: PLC0415
            import httpx  # noqa: PLC0415

            httpcore.AsyncHTTP11Connection.READ_NUM_BYTES = READ_BYTES
            self._clients[direct] = httpx.AsyncClient(
                **way_out(self._network, direct=direct),
                timeout=httpx.Timeout(self._read_seconds, connect=self._connect_seconds),
                headers={"User-Agent": USER_AGENT},
            )
        return self._clients[direct]


def way_out(network: Network, *, direct: bool) -> dict[str, Any]:
    """Return the options of an httpx client that goes out as *network* says, or *direct* to this machine.

    It follows no redirects. Raises :class:`OutboundError` for an unusable file of authorities.
    """
    return {
        "verify": _tls_context(network),
        "proxy": None if direct else network.proxy,
        "trust_env": not direct,
        "follow_redirects": False,
    }


def _tls_context(network: Network) -> "ssl.SSLContext":
    """Return what tells which servers are trusted."""
    import ssl  # noqa: PLC0415

    import httpx  # noqa: PLC0415

    context = httpx.create_ssl_context()
    if network.ca_file:
        try:
            context.load_verify_locations(network.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise OutboundError(f"unusable authorities: {type(error).__name__}") from error
    return context


def _origin(url: str) -> tuple[str, str, int | None]:
    import httpx  # noqa: PLC0415

    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port


def _next_url(url: str, response: "httpx.Response", followed: int) -> str:
    import httpx  # noqa: PLC0415

    if followed > MOST_REDIRECTS:
        raise OutboundError("too many redirects")
    target = httpx.URL(url).join(response.headers["location"])
    if target.scheme not in ("http", "https") or (
        httpx.URL(url).scheme == "https" and target.scheme != "https"
    ):
        raise OutboundError("unsafe redirect")
    return str(target)
