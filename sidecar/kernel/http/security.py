"""Who may talk to the server. Runs before everything else, for every request.

The order matters: Host (against DNS rebinding), Origin (against other sites), CORS preflight, the
stop, the token exchange, then the token. A request that is refused runs nothing.
"""

import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qs, unquote

from sidecar.kernel.catalogue import locale_from_accept_language, use_locale
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.http.tickets import TICKET_PARAMETER, Tickets

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TAURI_ORIGINS: Final = ("tauri://localhost", "http://tauri.localhost", "https://tauri.localhost")
DEVELOPMENT_ORIGINS: Final = ("http://localhost:5173", "http://127.0.0.1:5173")
ALLOWED_HEADERS: Final = (
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, Accept-Language,"
    " If-None-Match, If-Range"
)
ALLOWED_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
EXPOSED_HEADERS: Final = "Content-Disposition, Content-Range, Content-Length, ETag, Accept-Ranges"
PREFLIGHT_SECONDS: Final = 600
# Stands for an encoded slash inside a path segment, which belongs to the segment. It is a
# noncharacter, so no id can contain it.
ENCODED_SLASH: Final = "\ufdd0"

SHUTDOWN_PATH: Final = "/api/system/shutdown"

Access = Literal["open", "session", "host"]


@dataclass(slots=True)
class SecurityGate:
    """What a request is checked against."""

    session_token: str = field(repr=False)
    host_token: str = field(repr=False)
    development: bool = False
    port: int = 0
    stopping: bool = False
    tickets: Tickets = field(default_factory=Tickets)
    cookie_value: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def base_url(self) -> str:
        """The server's own address, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie_name(self) -> str:
        """The name of the session cookie; two sidecars in one browser don't share it."""
        return f"sidecar_session_{self.port}"

    def allowed_origins(self) -> tuple[str, ...]:
        """Return the origins whose pages may send requests."""
        own = (self.base_url, f"http://localhost:{self.port}")
        return (*TAURI_ORIGINS, *own, *(DEVELOPMENT_ORIGINS if self.development else ()))

    def check_host(self, hosts: list[str]) -> None:
        """Raise ``HOST_NOT_ALLOWED`` unless the one Host names this server."""
        allowed = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        if len(hosts) != 1 or hosts[0].lower() not in allowed:
            raise ProjectError("HOST_NOT_ALLOWED")

    def check_origin(self, origins: list[str]) -> str | None:
        """Return the origin of the request, None without one, or raise ``ORIGIN_NOT_ALLOWED``."""
        if not origins:
            return None
        if len(origins) != 1 or origins[0] not in self.allowed_origins():
            raise ProjectError("ORIGIN_NOT_ALLOWED")
        return origins[0]

    def access_of_token(self, token: str) -> Access | None:
        """Return what a token opens, None for a wrong one. Takes the same time for any."""
        given = token.encode("utf-8", "surrogateescape")
        is_session = hmac.compare_digest(given, self.session_token.encode())
        is_host = hmac.compare_digest(given, self.host_token.encode())
        return "host" if is_host else "session" if is_session else None

    def access_of(self, request: "_Request") -> Access | None:
        """Return what the request's credentials open, None if it has no valid ones."""
        authorization = request.header("authorization")
        if authorization is not None:
            # An invalid header isn't made good by a cookie.
            scheme, _, token = authorization.partition(" ")
            return self.access_of_token(token) if scheme == "Bearer" and token else None
        if hmac.compare_digest(
            request.cookie(self.cookie_name).encode(), self.cookie_value.encode()
        ):
            return "session"
        ticket = request.query(TICKET_PARAMETER)
        if ticket is not None and self.tickets.opens(ticket, request.method, request.path):
            return "session"
        return None


class _Request:
    """The parts of an ASGI scope that the checks look at."""

    def __init__(self, scope: "Scope") -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._query = parse_qs(scope["query_string"].decode("latin-1"))

    def headers(self, name: str) -> list[str]:
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in self._headers if key == wanted]

    def header(self, name: str) -> str | None:
        found = self.headers(name)
        # A repeated credential header is as good as none.
        return ("" if len(found) > 1 else found[0]) if found else None

    def query(self, name: str) -> str | None:
        values = self._query.get(name)
        return values[0] if values else None

    def cookie(self, name: str) -> str:
        try:
            morsel = SimpleCookie("; ".join(self.headers("cookie"))).get(name)
        except CookieError:
            return ""
        return morsel.value if morsel else ""


def required_access(path: str) -> Access:
    """Return what a path needs."""
    if path == "/health":
        return "open"
    if path in (SHUTDOWN_PATH, "/host") or path.startswith("/host/"):
        return "host"
    return "session"


class SecurityMiddleware:
    """The ASGI layer around the application."""

    def __init__(self, app: "ASGIApp", gate: SecurityGate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Check a request and pass it on, or answer it."""
        if scope["type"] != "http":
            return
        request = _Request(scope)
        with use_locale(locale_from_accept_language(request.header("accept-language"))):
            origin: str | None = None
            try:
                self._gate.check_host(request.headers("host"))
                origin = self._gate.check_origin(request.headers("origin"))
                send = _with_headers(send, origin)
                answered = await self._answer_early(request, origin, send)
            except ProjectError as error:
                await _send_error(send, error)
                return
            if not answered:
                _keep_encoded_slashes(scope)
                await self._app(scope, receive, send)

    async def _answer_early(self, request: _Request, origin: str | None, send: "Send") -> bool:
        gate = self._gate
        if request.method == "OPTIONS" and request.header("access-control-request-method"):
            if origin is None:
                raise ProjectError("ORIGIN_NOT_ALLOWED")
            await _send(send, 204, _preflight_headers(request))
            return True
        if gate.stopping:
            raise ProjectError("SHUTTING_DOWN")
        needed = required_access(request.path)
        if needed == "open":
            return False
        token = request.query("token")
        if request.path == "/" and request.method in ("GET", "HEAD") and token is not None:
            await self._exchange(token, send)
            return True
        access = gate.access_of(request)
        if access is None:
            raise ProjectError("SESSION_INVALID")
        if needed == "host" and access != "host":
            raise ProjectError("HOST_TOKEN_REQUIRED")
        return False

    async def _exchange(self, token: str, send: "Send") -> None:
        """Turn the session token of an address into a cookie, and lose the token."""
        gate = self._gate
        if gate.access_of_token(token) != "session":
            raise ProjectError("SESSION_INVALID")
        cookie = f"{gate.cookie_name}={gate.cookie_value}; Path=/; HttpOnly; SameSite=Strict"
        headers = {
            "location": "/",
            "set-cookie": cookie,
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
        }
        await _send(send, 303, headers)


def _preflight_headers(request: _Request) -> dict[str, str]:
    headers = {
        "access-control-allow-methods": ALLOWED_METHODS,
        "access-control-allow-headers": ALLOWED_HEADERS,
        "access-control-max-age": str(PREFLIGHT_SECONDS),
    }
    if request.header("access-control-request-private-network") == "true":
        headers["access-control-allow-private-network"] = "true"
    return headers


def _keep_encoded_slashes(scope: "Scope") -> None:
    """Let ``%2F`` stay a part of its segment instead of becoming a separator."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" in raw.lower():
        segments = raw.split(b"?", 1)[0].decode("latin-1").split("/")
        scope["path"] = "/".join(
            unquote(segment).replace("/", ENCODED_SLASH) for segment in segments
        )


def _with_headers(send: "Send", origin: str | None) -> "Send":
    """Add to every response what a cross-origin page needs to read it, and what keeps it safe."""
    extra: list[tuple[bytes, bytes]] = [
        (b"x-content-type-options", b"nosniff"),
        (b"vary", b"Origin"),
    ]
    if origin is not None:
        extra += [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", EXPOSED_HEADERS.encode()),
        ]

    async def send_with_headers(message: "Message") -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return send_with_headers


async def _send_error(send: "Send", error: ProjectError) -> None:
    body = json.dumps(error.body(), ensure_ascii=False).encode()
    await _send(send, error.status, {"content-type": "application/json"}, body)


async def _send(send: "Send", status: int, headers: dict[str, str], body: bytes = b"") -> None:
    pairs: Iterable[tuple[bytes, bytes]] = (
        (name.encode(), value.encode("latin-1")) for name, value in headers.items()
    )
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": status,
        "headers": [*pairs, (b"content-length", str(len(body)).encode())],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
