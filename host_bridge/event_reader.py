"""Read server-sent events, and keep reading across broken connections."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from host_bridge.errors import SidecarConnectionError, SidecarUnavailableError
from host_bridge.http_session import HttpSession, connection_error, request_error

_READ_BYTES = 65536
_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 5.0
# Servers send a comment every few seconds; silence for longer means a dead connection.
_SILENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. ``id`` is the last id that the stream gave, ``data`` the joined data lines."""

    id: str
    event: str
    data: str

    def json(self) -> Any:
        """The data as JSON; ValueError if it is none."""
        return json.loads(self.data)


class EventParser:
    """Turns the bytes of a ``text/event-stream`` into events, by the rules of the HTML standard."""

    def __init__(self) -> None:
        self.last_id = ""
        self.retry_seconds: float | None = None
        self.received_bytes = 0
        self._pending = bytearray()
        self._event = ""
        self._data: list[str] = []
        self._at_start = True

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take the next bytes and give the events that they complete."""
        self.received_bytes += len(chunk)
        self._pending += chunk
        events: list[ServerEvent] = []
        while (line := self._next_line()) is not None:
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    def _next_line(self) -> str | None:
        match = _LINE_END.search(self._pending)
        # A carriage return at the very end may be the first half of a pair.
        if match is None or (match[0] == b"\r" and match.end() == len(self._pending)):
            return None
        start, end = match.span()
        return self._cut(start, end)

    def _cut(self, start: int, end: int) -> str:
        line = self._pending[:start].decode("utf-8", "replace")
        del self._pending[:end]
        if self._at_start:
            self._at_start = False
            line = line.removeprefix("\ufeff")
        return line

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_seconds = int(value) / 1000
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._event or "message", self._data
        self._event, self._data = "", []
        return ServerEvent(self.last_id, name, "\n".join(data)) if data else None


@dataclass(frozen=True, slots=True)
class EventSource:
    """Where a stream is read from: the session of the moment, which a restart replaces."""

    session: Callable[[float], HttpSession]
    token: str
    stopped: threading.Event


def follow(
    source: EventSource, path: str, after: str | None, *, give_up_after: float
) -> Generator[ServerEvent, None, None]:
    """Yield the events of a resumable stream until it is over.

    A stream is over when the server answers 204, which it does for a cursor at the terminal event.
    After a broken or closed connection the next one goes on behind the last event. Raises
    :class:`SidecarRequestError` if the server refuses the stream, :class:`SidecarUnavailableError`
    after a stop or when no connection succeeded for ``give_up_after`` seconds.
    """
    cursor, delay = after, _FIRST_DELAY_SECONDS
    deadline = time.monotonic() + give_up_after
    while True:
        parser = EventParser()
        parser.last_id = cursor or ""
        failure: SidecarConnectionError | None = None
        try:
            with closing(_read_once(source, path, cursor, parser, give_up_after)) as connection:
                for event in connection:
                    if event is None:
                        return
                    cursor = event.id or cursor
                    yield event
        except SidecarConnectionError as error:
            failure = error
        if parser.received_bytes:
            delay, deadline = _FIRST_DELAY_SECONDS, time.monotonic() + give_up_after
        elif failure is not None and time.monotonic() > deadline:
            message = f"no event stream for {give_up_after:g} s: {failure}"
            raise SidecarUnavailableError(message) from failure
        if source.stopped.wait(parser.retry_seconds or delay):
            raise SidecarUnavailableError("the sidecar was stopped")
        delay = min(delay * 2, _LONGEST_DELAY_SECONDS)


def read_answer(
    session: HttpSession, path: str, *, token: str, body: bytes
) -> Generator[ServerEvent, None, None]:
    """POST JSON and yield the events of the answer as they come; it can't be resumed.

    Closing the generator hangs up, which cancels the work behind it. Raises
    :class:`SidecarRequestError` if the request is refused, :class:`SidecarConnectionError` if the
    connection breaks.
    """
    headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
    connection, response = session.open(
        "POST", path, token=token, headers=headers, body=body, timeout=_SILENCE_SECONDS
    )
    parser = EventParser()
    try:
        if response.status != http.client.OK:
            raise request_error(response.status, response.read())
        while chunk := response.read1(_READ_BYTES):
            yield from parser.feed(chunk)
    except (OSError, http.client.HTTPException) as error:
        raise connection_error(error) from error
    finally:
        connection.close()


def _read_once(
    source: EventSource, path: str, cursor: str | None, parser: EventParser, wait: float
) -> Generator[ServerEvent | None, None, None]:
    """The events of one connection; None at the end if the stream as a whole is over."""
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if cursor is not None:
        headers["Last-Event-ID"] = cursor
    connection, response = source.session(wait).open(
        "GET", path, token=source.token, headers=headers, timeout=_SILENCE_SECONDS
    )
    try:
        if response.status == http.client.NO_CONTENT:
            yield None
            return
        if response.status != http.client.OK:
            error = request_error(response.status, response.read())
            if response.status == http.client.SERVICE_UNAVAILABLE:
                raise SidecarConnectionError(str(error))
            raise error
        while chunk := response.read1(_READ_BYTES):
            yield from parser.feed(chunk)
    except (OSError, http.client.HTTPException) as error:
        raise connection_error(error) from error
    finally:
        # Both: the response keeps the socket open as long as it is not read to its end.
        response.close()
        connection.close()
