"""The frames of a model's answer, and what becomes of its source when the reader goes."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from sidecar.kernel.http.sse import HEARTBEAT, model_frames


@dataclass(frozen=True)
class Told:
    event: str
    data: dict[str, Any] = field(default_factory=dict)


class Source:
    """Events, and whether their source was closed."""

    def __init__(self, *events: Told, hold: bool = False, failure: Exception | None = None) -> None:
        self._events = events
        self._hold = hold
        self._failure = failure
        self.go_on = asyncio.Event()
        self.closed = asyncio.Event()

    async def events(self) -> AsyncGenerator[Told, None]:
        try:
            for event in self._events:
                yield event
            if self._failure:
                raise self._failure
            if self._hold:
                await self.go_on.wait()
                yield Told("Done", {"status": "completed"})
        finally:
            self.closed.set()


def parsed(frame: str) -> dict[str, Any]:
    name, data = frame.split("\n")
    assert name.startswith("event: ") and data.startswith("data: ")
    body: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert body["event"] == name.removeprefix("event: ")
    return body


def frames_of(chunks: bytes) -> list[dict[str, Any]]:
    parts = chunks.decode().split("\n\n")
    return [parsed(part) for part in parts if part and not part.startswith(":")]


@pytest.mark.proves("providers.stream.envelope", "providers.stream.sequence")
async def test_each_frame_has_the_envelope() -> None:
    source = Source(
        Told("TextDelta", {"text": "研\u2028究\n"}), Told("Done", {"status": "completed"})
    )
    text = b"".join([chunk async for chunk in model_frames(source.events())])
    first, second = frames_of(text)
    assert first.keys() == {"event", "sequence", "data", "timestamp"}
    assert first["data"] == {"text": "研\u2028究\n"}
    assert (first["sequence"], second["sequence"]) == (1, 2)
    assert first["timestamp"].endswith("Z")
    assert datetime.fromisoformat(first["timestamp"]).utcoffset() == timedelta(0)
    assert b"\nid:" not in text and not text.startswith(b"id:")
    assert "\u2028" not in text.decode()


@pytest.mark.proves("providers.stream.heartbeat")
async def test_silence_is_filled_with_comments_that_count_for_nothing() -> None:
    source = Source(Told("TextDelta", {"text": "a"}), hold=True)
    frames = model_frames(source.events(), heartbeat_seconds=0.01)
    first = await anext(frames)
    beats = [await anext(frames), await anext(frames)]
    source.go_on.set()
    rest = b"".join([chunk async for chunk in frames])
    assert beats == [HEARTBEAT, HEARTBEAT] and HEARTBEAT.startswith(b":")
    assert [frame["sequence"] for frame in frames_of(first + rest)] == [1, 2]


async def test_closing_the_frames_closes_the_source() -> None:
    source = Source(Told("TextDelta", {"text": "a"}), hold=True)
    frames = model_frames(source.events())
    await anext(frames)
    await frames.aclose()
    assert source.closed.is_set()


async def test_a_source_that_fails_ends_the_stream_and_does_not_hang_it() -> None:
    source = Source(Told("TextDelta", {"text": "a"}), failure=LookupError("ours"))
    frames = model_frames(source.events())
    assert b"TextDelta" in await anext(frames)
    with pytest.raises(LookupError):
        await asyncio.wait_for(anext(frames), 5)
    assert source.closed.is_set()


async def test_a_slow_reader_holds_its_source_back() -> None:
    told = 0

    async def many() -> AsyncGenerator[Told, None]:
        nonlocal told
        for told in range(5000):  # noqa: B007 - counted where it is looked at
            yield Told("TextDelta", {"text": "a"})

    frames = model_frames(many())
    first = await anext(frames)
    for _ in range(2000):
        await asyncio.sleep(0)
    assert told < 1000
    rest = b"".join([chunk async for chunk in frames])
    assert [frame["sequence"] for frame in frames_of(first + rest)] == list(range(1, 5001))
