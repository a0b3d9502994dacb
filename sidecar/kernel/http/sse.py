"""Server-sent events: one line of JSON a frame.

Resource events carry an ``id`` and can be resumed; the events of a model's answer carry none, and
their stream ends with the request.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse

from sidecar.kernel.clock import utc_now
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog, StoredEvent

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

# Below the 15 s that clients may count on, whatever else the loop has to do.
HEARTBEAT_SECONDS: Final = 12.0
HEARTBEAT: Final = b": heartbeat\n\n"
HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
# How far a source of events that aren't kept may run ahead of its reader. Also what a fast source does
# in one go: with more, twenty of them would keep everybody else waiting.
_EVENTS_AHEAD: Final = 16

# JSON escapes CR, LF and NUL itself; these three end a line for some readers.
_LINE_BREAKS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}

Envelope = Callable[[StoredEvent], dict[str, Any]]


def resource_envelope(event: StoredEvent) -> dict[str, Any]:
    """Return the ``data`` of a resource event's frame."""
    return {
        "sequence": event.sequence,
        "resource_id": event.resource_id,
        "data": event.wire_data(),
        "timestamp": event.timestamp,
    }


def encode_frame(event: StoredEvent, envelope: Envelope = resource_envelope) -> bytes:
    """Return the bytes of one frame."""
    body = json.dumps(envelope(event), ensure_ascii=False, separators=(",", ":"))
    body = body.translate(_LINE_BREAKS)
    return f"id: {event.sequence}\nevent: {event.event}\ndata: {body}\n\n".encode()


def parse_cursor(last_event_id: str | None, after_sequence: str | None) -> int:
    """Return the sequence after which a client wants to go on; 0 for the beginning.

    ``Last-Event-ID`` wins, since a browser that reconnects repeats the old address; an empty one
    counts as absent. Raises ``TRACE_CURSOR_INVALID``.
    """
    text = last_event_id or after_sequence or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ProjectError("TRACE_CURSOR_INVALID")
    return int(text)


async def checked_cursor(log: EventLog, resource_id: str, cursor: int) -> int:
    """Return *cursor* if the resource has come that far, else raise ``TRACE_CURSOR_INVALID``."""
    last = await log.last_sequence(resource_id)
    if cursor > last:
        raise ProjectError("TRACE_CURSOR_INVALID", details={"last_sequence": last})
    return cursor


LastEventId = Annotated[
    str | None, Header(description="The id of the last event that was seen; wins over the query.")
]
AfterSequence = Annotated[str | None, Query(description="Only events after this sequence.")]


def stream_responses(*, runs_again: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of an operation that answers with :func:`resource_stream`."""
    later = " for now" if runs_again else ""
    return {
        200: {
            "description": "The events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {
            "description": f"The cursor is that of the terminal event: nothing will follow{later}."
        },
    }


async def resource_stream(
    log: EventLog,
    resource_id: str,
    *,
    last_event_id: str | None,
    after_sequence: str | None,
    envelope: Envelope = resource_envelope,
    beginning: int | None = None,
) -> Response:
    """Answer a request for the events of a resource that exists.

    204 if the client has seen the terminal event already, so that a browser stops reconnecting.
    *beginning* is given for a resource that runs again and again: the sequence before the newest
    run, where a client without a cursor begins. The stream then ends with the run that it follows.
    """
    cursor = await checked_cursor(log, resource_id, parse_cursor(last_event_id, after_sequence))
    runs_again = beginning is not None
    if beginning is not None and not last_event_id and not after_sequence:
        cursor = beginning
    if cursor and await log.is_over(resource_id, cursor):
        return Response(status_code=204)
    return StreamingResponse(
        _frames(log, resource_id, cursor, envelope, to_first_end=runs_again),
        media_type="text/event-stream",
        headers=HEADERS,
    )


async def _frames(
    log: EventLog, resource_id: str, cursor: int, envelope: Envelope, *, to_first_end: bool
) -> AsyncIterator[bytes]:
    subscription = log.subscribe(
        resource_id, cursor, heartbeat=HEARTBEAT_SECONDS, to_first_end=to_first_end
    )
    async with contextlib.aclosing(subscription):
        async for batch in subscription:
            yield b"".join(encode_frame(event, envelope) for event in batch) if batch else HEARTBEAT
            # Twenty fast followers must not keep the loop from everybody else.
            await asyncio.sleep(0)


class StreamedEvent(Protocol):
    """An event of a stream that isn't kept: a name and JSON data."""

    @property
    def event(self) -> str:
        """The event's name."""
        ...

    @property
    def data(self) -> dict[str, Any]:
        """What it tells."""
        ...


def model_stream(
    events: AsyncGenerator[StreamedEvent, None], *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> Response:
    """Answer with *events* as they come; each frame has ``event, sequence, data, timestamp``.

    Sequences count from 1. While nothing comes, comments keep the connection open. As soon as the
    client is gone *events* is closed, and nothing is sent any more. An answer can't be resumed, so
    frames have no ``id``.
    """
    return _ClosingStream(
        model_frames(events, heartbeat_seconds), media_type="text/event-stream", headers=HEADERS
    )


async def model_frames(
    events: AsyncGenerator[StreamedEvent, None], heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of *events*, several frames at a time where they come faster than they are taken."""
    waiting: asyncio.Queue[StreamedEvent | None] = asyncio.Queue(_EVENTS_AHEAD)
    pump = asyncio.create_task(_pump(events, waiting))
    sequence = 0
    try:
        while True:
            try:
                async with asyncio.timeout(heartbeat_seconds):
                    event = await waiting.get()
            except TimeoutError:
                yield HEARTBEAT
                continue
            frames = []
            while event is not None:
                sequence += 1
                frames.append(_model_frame(event, sequence))
                if waiting.empty():
                    break
                event = waiting.get_nowait()
            if frames:
                yield b"".join(frames)
            if event is None:
                break
        await pump
    finally:
        # The source is closed from inside its own task: its cleanup isn't cut short by our cancel.
        pump.cancel()
        await asyncio.wait([pump])


async def _pump(
    events: AsyncGenerator[StreamedEvent, None], waiting: asyncio.Queue[StreamedEvent | None]
) -> None:
    try:
        async with contextlib.aclosing(events):
            async for event in events:
                await waiting.put(event)
    except Exception:
        await waiting.put(None)
        raise
    await waiting.put(None)


def _model_frame(event: StreamedEvent, sequence: int) -> bytes:
    envelope = {
        "event": event.event,
        "sequence": sequence,
        "data": event.data,
        "timestamp": utc_now(),
    }
    body = json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).translate(_LINE_BREAKS)
    return f"event: {event.event}\ndata: {body}\n\n".encode()


class _ClosingStream(StreamingResponse):
    """Closes what it streams when the client goes away, not whenever it is collected."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Stream, then close."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.body_iterator.aclose()
