"""The messages that a host and a sidecar exchange over stdin and stdout.

Both ends import this module, and the sidecar does so before it is ready: it uses a few modules of
the standard library and nothing else.

The exchange, one JSON object a line, UTF-8:

1. The host starts ``sidecar serve`` and writes :class:`SessionSettings` to its stdin.
2. The sidecar answers on stdout with :class:`ReadyMessage` or :class:`FatalMessage`, once.
3. The host may write :class:`ShutdownRequest`. Closing stdin means the same, and so does the
   host's death, because the system then closes the pipe.

No exception of this module repeats what a line contained, since a line may hold a token.
"""

import base64
import json
import os
import re
from dataclasses import dataclass, field, fields
from typing import Any, Self

PROTOCOL_VERSION = 1
FIRST_LINE_LIMIT = 65536
"""The longest first line that a sidecar accepts, in bytes, the line's end not counted."""
HANDSHAKE_TIMEOUT_SECONDS = 10
"""How long a sidecar waits for the first line."""
SHUTDOWN_LIMIT_SECONDS = 10
"""How long a sidecar may take from a stop request to the end of its process."""
TOKEN_BYTES = 32
"""The fewest bytes that a token must encode."""

_PATH_SETTINGS = ("data_dir", "vault_path")
_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]+(={0,2})")


class ProtocolViolation(ValueError):
    """A line that the other end must not send. ``reason_key`` says why, without the content."""

    def __init__(self, reason_key: str) -> None:
        super().__init__(reason_key)
        self.reason_key = reason_key


class HandshakeInvalid(ProtocolViolation):
    """A first line that cannot be used.

    ``reason_key`` is one of ``line_too_long``, ``line_not_utf8``, ``line_not_json``,
    ``line_not_object``, ``setting_type``, ``setting_empty``, ``setting_text``, ``token_weak``,
    ``tokens_equal``. ``setting`` is the name of the known field that is wrong, or None.
    """

    def __init__(self, reason_key: str, setting: str | None = None) -> None:
        super().__init__(reason_key)
        self.setting = setting


def new_token() -> str:
    """A fresh token: 32 random bytes as base64url text of 43 characters."""
    return base64.urlsafe_b64encode(os.urandom(TOKEN_BYTES)).rstrip(b"=").decode("ascii")


def is_strong_token(text: str) -> bool:
    """Whether ``text`` is base64url (padding optional) of at least 32 bytes."""
    match = _TOKEN_PATTERN.fullmatch(text)
    if match is None or (match[1] and len(text) % 4):
        return False
    digits = len(text) - len(match[1])
    return digits % 4 != 1 and digits * 3 // 4 >= TOKEN_BYTES


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The first line: what a host tells the sidecar that it starts. Every field is optional.

    ``session_token`` is for the webview, ``host_token`` for the host alone; the sidecar makes
    those that are missing and tells them in its ready line. ``host_pid`` lets the sidecar notice
    the host's end even while another process holds the pipe open. ``locale`` is ``en`` or
    ``zh-CN``. ``data_dir`` and ``vault_path`` are folders; ``log_level`` a name such as ``info``.
    """

    session_token: str | None = field(default=None, repr=False)
    host_token: str | None = field(default=None, repr=False)
    host_pid: int | None = None
    locale: str | None = None
    data_dir: str | None = None
    vault_path: str | None = None
    log_level: str | None = None

    @classmethod
    def from_line(cls, line: bytes) -> tuple[Self, tuple[str, ...]]:
        """Read a first line; also gives the names of fields that this version does not know.

        A field that is null counts as absent. Raises :class:`HandshakeInvalid`.
        """
        given = _object_of_line(line)
        known = {item.name for item in fields(cls)}
        unknown = tuple(sorted(name for name in given if name not in known))
        values = {name: value for name, value in given.items() if name in known}
        for name, value in values.items():
            if value is not None:
                _check_setting(name, value)
        settings = cls(**values)
        _check_tokens(settings)
        return settings, unknown

    def to_line(self) -> bytes:
        """The line to write, its end included. It holds the tokens: write it to the pipe alone."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        return _line({name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True)
class ReadyMessage:
    """The sidecar answers requests at ``base_url``.

    A token is there only if the sidecar made it itself.
    """

    port: int
    pid: int
    version: str
    base_url: str
    session_token: str | None = field(default=None, repr=False)
    host_token: str | None = field(default=None, repr=False)
    protocol: int = PROTOCOL_VERSION

    def to_line(self) -> bytes:
        """The line to write to stdout, its end included."""
        message: dict[str, Any] = {
            "event": "ready",
            "protocol": self.protocol,
            "port": self.port,
            "pid": self.pid,
            "version": self.version,
            "base_url": self.base_url,
        }
        if self.session_token is not None:
            message["session_token"] = self.session_token
        if self.host_token is not None:
            message["host_token"] = self.host_token
        return _line(message)


@dataclass(frozen=True, slots=True)
class FatalMessage:
    """The start failed. ``code`` is stable, ``message`` is for people and says what to do."""

    code: str
    message: str

    def to_line(self) -> bytes:
        """The line to write to stdout, its end included."""
        return _line({"event": "fatal", "code": self.code, "message": self.message})


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """The host asks for a graceful stop."""

    def to_line(self) -> bytes:
        """The line to write to stdin, its end included."""
        return _line({"type": "shutdown"})


def parse_event(line: bytes) -> ReadyMessage | FatalMessage:
    """Read a line of the sidecar's stdout.

    Raises :class:`ProtocolViolation` with ``line_too_long``, ``line_not_utf8``, ``line_not_json``,
    ``line_not_object``, ``event_unknown``, ``event_fields`` or ``protocol_version``.
    """
    message = _object_of_line(line)
    kind = message.get("event")
    if kind == "fatal":
        code, text = message.get("code"), message.get("message")
        if not isinstance(code, str) or not isinstance(text, str):
            raise ProtocolViolation("event_fields")
        return FatalMessage(code, text)
    if kind != "ready":
        raise ProtocolViolation("event_unknown")
    if message.get("protocol") != PROTOCOL_VERSION:
        raise ProtocolViolation("protocol_version")
    return _ready(message)


def parse_request(line: bytes) -> ShutdownRequest:
    """Read a line that a host wrote after the first one.

    Raises :class:`ProtocolViolation` (as :func:`parse_event`, or ``request_unknown``); a sidecar
    logs the reason and goes on.
    """
    if _object_of_line(line).get("type") != "shutdown":
        raise ProtocolViolation("request_unknown")
    return ShutdownRequest()


def _ready(message: dict[str, Any]) -> ReadyMessage:
    port, pid = _integer(message.get("port")), _integer(message.get("pid"))
    version, base_url = message.get("version"), message.get("base_url")
    session_token, host_token = message.get("session_token"), message.get("host_token")
    if (
        port is None
        or pid is None
        or not isinstance(version, str)
        or not isinstance(base_url, str)
        or not isinstance(session_token, str | None)
        or not isinstance(host_token, str | None)
    ):
        raise ProtocolViolation("event_fields")
    return ReadyMessage(port, pid, version, base_url, session_token, host_token)


def _object_of_line(line: bytes) -> dict[str, Any]:
    if len(line.rstrip(b"\r\n")) > FIRST_LINE_LIMIT:
        raise HandshakeInvalid("line_too_long")
    try:
        # Hosts on Windows like to begin a stream with a byte order mark.
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HandshakeInvalid("line_not_utf8") from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # The decoder's own error quotes the document, which may hold a token.
        raise HandshakeInvalid("line_not_json") from None
    if not isinstance(value, dict):
        raise HandshakeInvalid("line_not_object")
    return value


def _check_setting(name: str, value: object) -> None:
    if name == "host_pid":
        pid = _integer(value)
        if pid is None or not 0 < pid < 2**32:
            raise HandshakeInvalid("setting_type", name)
        return
    if not isinstance(value, str):
        raise HandshakeInvalid("setting_type", name)
    if name in _PATH_SETTINGS and not value.strip():
        # An empty path would silently mean the working directory.
        raise HandshakeInvalid("setting_empty", name)
    if "\0" in value or not _is_encodable(value):
        raise HandshakeInvalid("setting_text", name)


def _check_tokens(settings: SessionSettings) -> None:
    for name in ("session_token", "host_token"):
        token = getattr(settings, name)
        if token is not None and not is_strong_token(token):
            raise HandshakeInvalid("token_weak", name)
    session_token, host_token = settings.session_token, settings.host_token
    if session_token is None or host_token is None:
        return
    if session_token.rstrip("=") == host_token.rstrip("="):
        raise HandshakeInvalid("tokens_equal", "host_token")


def _integer(value: object) -> int | None:
    """The value if it is a JSON integer: Python counts ``true`` as one, JSON does not."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_encodable(value: str) -> bool:
    """Whether the system can use the text as a path: file names may hold escaped raw bytes."""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _line(message: dict[str, Any]) -> bytes:
    # Escaped to ASCII, so that the line survives whatever encoding the other end reads it with.
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
