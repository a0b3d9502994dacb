"""Follows one streamed answer from the request to its single end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.providers.calls.attempts import AttemptRecord
from sidecar.providers.calls.retries import Repeats, RetryPolicy
from sidecar.providers.calls.transport import Transport, Upstream, UpstreamAnswer
from sidecar.providers.failures import UpstreamError
from sidecar.providers.protocols.adapter import Adapter, ChatCall, Decoder
from sidecar.providers.protocols.event_parts import text_delta, thinking_delta, usage_event
from sidecar.providers.protocols.frames import Frame, FrameReader
from sidecar.providers.schemas.model_call import ModelEvent, ModelReply, TokenUsage

log = get_logger(__name__)

# How far the network may run ahead of a slow reader, in pieces as they came.
_AHEAD: Final = 64
# After a model has said why it stopped, its numbers and the closing line come at once or never.
_AFTER_FINISH_SECONDS: Final = 5.0
# A connection that is read to its end can be used again.
_DRAIN_SECONDS: Final = 1.0

# What may befall a connection after the answer is whole.
_FORGIVEN: Final = ("PROVIDER_STREAM_TRUNCATED", "PROVIDER_TIMEOUT")

_STREAM_TYPES: Final = frozenset(
    {
        "text/event-stream",
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/stream+json",
        "application/octet-stream",
        "text/plain",
        "",
    }
)


class StreamControl:
    """Ends a stream from outside while its reader goes on listening: the stream gets its proper end."""

    def __init__(self) -> None:
        self.ending: str | None = None
        self._stops: list[Callable[[], Any]] = []

    def cancel(self) -> None:
        """End with ``Done`` of status ``cancelled``: nobody wants the answer any more."""
        self._end("cancelled")

    def interrupt(self) -> None:
        """End with ``PROVIDER_STREAM_INTERRUPTED``: the program stops."""
        self._end("interrupted")

    def on_end(self, stop: Callable[[], Any]) -> None:
        """Call *stop* once the stream is to end."""
        self._stops.append(stop)
        if self.ending:
            stop()

    def _end(self, how: str) -> None:
        if self.ending is None:
            self.ending = how
            for stop in self._stops:
                stop()


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """Everything that a streamed call needs."""

    adapter: Adapter
    call: ChatCall
    upstream: Upstream
    body: dict[str, Any]
    record: AttemptRecord


@dataclass(slots=True)
class Draining:
    """Tasks that read the last bytes of answers that are over."""

    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def add(self, task: asyncio.Task[None]) -> None:
        """Let *task* end by itself, for a moment."""
        self.tasks.add(task)
        limit = asyncio.get_running_loop().call_later(_DRAIN_SECONDS, task.cancel)

        def done(ended: asyncio.Task[None]) -> None:
            limit.cancel()
            self.tasks.discard(ended)

        task.add_done_callback(done)

    async def close(self) -> None:
        """End them now."""
        for task in tuple(self.tasks):
            task.cancel()
        if self.tasks:
            await asyncio.wait(tuple(self.tasks))


class _Reading:
    """Reads an answer in a task of its own, so that it can be ended while nothing comes."""

    def __init__(self, streamed: StreamedCall, transport: Transport, policy: RetryPolicy) -> None:
        self._streamed = streamed
        self._transport = transport
        self._policy = policy
        self._items: asyncio.Queue[bytes | ModelReply | ProjectError | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_AHEAD)
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(lambda _: self._items.put_nowait(None))

    async def next(self) -> bytes | ModelReply | ProjectError | None:
        """Return the next piece, the whole answer of a server that doesn't stream, or what went wrong.

        None is the end of the body, or of the reading.
        """
        item = await self._items.get()
        if isinstance(item, bytes):
            self._room.release()
        return item

    def stop(self) -> None:
        """Hang up."""
        self.task.cancel()

    async def close(self) -> None:
        """Hang up, and wait until that is done."""
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _run(self) -> None:
        try:
            await self._read()
        except ProjectError as error:
            self._items.put_nowait(error)
        except Exception:
            log.exception("provider.stream_failed")
            self._items.put_nowait(ProjectError("INTERNAL_ERROR"))

    async def _read(self) -> None:
        repeats = Repeats(self._streamed.body, self._policy)
        while True:
            self._streamed.record.begin()
            try:
                async with self._transport.stream(
                    self._streamed.upstream, self._streamed.adapter.chat_path, repeats.body
                ) as answer:
                    await self._pass_on(answer)
                return
            except UpstreamError as error:
                answered = self._streamed.record.answered
                wait = None if answered else repeats.wait_after(error)
                if wait is None:
                    raise
                await self._streamed.record.failed(error)
            await asyncio.sleep(wait)

    async def _pass_on(self, answer: UpstreamAnswer) -> None:
        self._streamed.record.answered = True
        if answer.content_type == "application/json":
            told = await answer.json()
            if not isinstance(told, dict):
                raise UpstreamError("PROVIDER_INVALID_RESPONSE", {})
            reply = self._streamed.adapter.reply(self._streamed.call, told)
            self._items.put_nowait(reply)
            return
        if answer.content_type not in _STREAM_TYPES:
            raise UpstreamError("PROVIDER_PROTOCOL_ERROR", {"reason": "not_a_stream"})
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                await self._room.acquire()
                self._items.put_nowait(chunk)


async def model_events(
    streamed: StreamedCall,
    transport: Transport,
    control: StreamControl,
    draining: Draining,
    policy: RetryPolicy,
) -> AsyncGenerator[ModelEvent, None]:
    """Yield the events of a call: at most one ``Error``, and exactly one ``Done`` as the last.

    Closing the generator hangs up at once and yields nothing more. The attempt is written before its
    ``Done`` is given.
    """
    record = streamed.record
    reading = _Reading(streamed, transport, policy)
    control.on_end(reading.stop)
    decoder = streamed.adapter.decoder(streamed.call)
    failure: ProjectError | None = None
    usage: TokenUsage | None = None
    try:
        try:
            async with aclosing(_decoded(streamed, reading, decoder, control)) as events:
                async for event in events:
                    if event.event == "Usage":
                        usage = TokenUsage(**event.data)
                    yield event
        except ProjectError as error:
            failure = error
        except Exception:
            log.exception("provider.answer_not_understood")
            failure = UpstreamError("PROVIDER_INVALID_RESPONSE", {})
        if decoder.ended and failure is None:
            draining.add(reading.task)
        else:
            await reading.close()
        usage = usage or decoder.usage
        for event in await _last(streamed, control, failure, decoder.finish_reason, usage):
            yield event
    finally:
        try:
            if reading.task not in draining.tasks:
                await reading.close()
        finally:
            await record.cancelled(usage or decoder.usage)


async def _last(
    streamed: StreamedCall,
    control: StreamControl,
    failure: ProjectError | None,
    finish_reason: str | None,
    usage: TokenUsage | None,
) -> tuple[ModelEvent, ...]:
    """Write how the attempt ended, and return the events that say so."""
    record = streamed.record
    if control.ending == "interrupted":
        failure = ProjectError("PROVIDER_STREAM_INTERRUPTED")
    if failure is not None:
        failure.details = {**streamed.upstream.about, **failure.details}
        await record.failed(failure, usage)
        return error_event(failure), done_event("failed")
    if control.ending == "cancelled":
        await record.cancelled(usage)
        return (done_event("cancelled"),)
    await record.completed(usage)
    return (done_event("completed", finish_reason or "stop"),)


async def _decoded(
    streamed: StreamedCall, reading: _Reading, decoder: Decoder, control: StreamControl
) -> AsyncGenerator[ModelEvent, None]:
    reader = streamed.adapter.reader()
    while not decoder.ended:
        item = await _next(reading, decoder)
        if control.ending:
            return
        if isinstance(item, ModelReply):
            decoder.finish_reason, decoder.ended = item.finish_reason, True
            for event in events_of_reply(item):
                yield event
            return
        if item is None:
            for event in _last_events(reader, decoder):
                yield event
            break
        for event in _events_in(reader.feed(item), decoder):
            yield event
            if control.ending:
                return
    # All or none: a call whose neighbour is broken must not look ready to be run.
    for event in list(decoder.finish()):
        yield event


def _events_in(frames: list[Frame], decoder: Decoder) -> Iterator[ModelEvent]:
    for frame in frames:
        yield from decoder.decode(frame)
        if decoder.ended:
            return


def _last_events(reader: FrameReader, decoder: Decoder) -> Iterator[ModelEvent]:
    """Yield what the end of the body completes; raises ``PROVIDER_STREAM_TRUNCATED`` if it came too soon."""
    # A last line that was cut off is no message.
    with contextlib.suppress(UpstreamError):
        yield from _events_in(reader.rest(), decoder)
    if not decoder.complete:
        raise UpstreamError("PROVIDER_STREAM_TRUNCATED", {})


async def _next(reading: _Reading, decoder: Decoder) -> bytes | ModelReply | None:
    """Return what comes next, None at the end; raises what went wrong while it still matters."""
    if not decoder.complete:
        item = await reading.next()
    else:
        try:
            async with asyncio.timeout(_AFTER_FINISH_SECONDS):
                item = await reading.next()
        except TimeoutError:
            return None
    if isinstance(item, ProjectError):
        if decoder.complete and item.code in _FORGIVEN:
            return None
        raise item
    return item


def events_of_reply(reply: ModelReply) -> Iterator[ModelEvent]:
    """Yield the events of an answer that came in one piece though a stream was asked for."""
    if reply.reasoning_content:
        yield thinking_delta(reply.reasoning_content)
    if reply.content:
        yield text_delta(reply.content)
    for call in reply.tool_calls:
        known: Mapping[str, Any] = {"tool_call_id": call.tool_call_id}
        yield ModelEvent("ToolCallStart", {**known, "name": call.name})
        yield ModelEvent("ToolCallDelta", {**known, "arguments_delta": call.arguments_text()})
        yield ModelEvent(
            "ToolCallEnd",
            {**known, "name": call.name, "arguments": call.arguments, "status": "completed"},
        )
    if reply.usage:
        yield usage_event(reply.usage)


def error_event(error: ProjectError) -> ModelEvent:
    """Return what a stream says of its failure."""
    data = {"code": error.code, "message": error.message(), "details": error.details}
    return ModelEvent("Error", data)


def done_event(status: str, finish_reason: str | None = None) -> ModelEvent:
    """Return the end of a stream."""
    return ModelEvent("Done", {"status": status, "finish_reason": finish_reason})
