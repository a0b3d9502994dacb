"""A stream that is cut anywhere, also inside a character, gives what the uncut one gives."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.providers.protocols.adapter import ChatCall
from sidecar.providers.protocols.adapters import ADAPTERS
from sidecar.providers.protocols.event_parts import ThinkTags, WholeCharacters
from sidecar.providers.protocols.frames import Frame, NdjsonReader, SseReader
from sidecar.providers.protocols.profiles import DEFAULT
from sidecar.providers.schemas.model_call import ModelEvent
from tests.fakes.upstream import Answer, Call, Turn
from tests.providers.bench import PROTOCOLS, SEARCHING, Bench, fake, names

TURN = Turn(
    text=["研究🌏", "e\u0301\u2028 ok"],
    thinking=["想👩‍💻"],
    calls=[Call("call_1", "rag_search", ['{"query": "死', '锁 👍"}'])],
    usage=(3, 4),
)
SMALL = Turn(text=["é🌏"])


def body_of(protocol: str, turn: Turn = TURN) -> bytes:
    return b"".join(fake(protocol).stream(turn).pieces)


def decoded(protocol: str, pieces: Iterable[bytes]) -> list[ModelEvent]:
    """The events of a body that comes in these pieces, without a network."""
    adapter = ADAPTERS[fake(protocol).PROVIDER_TYPE]
    call = ChatCall.of("m", SEARCHING, DEFAULT)
    reader, decoder = adapter.reader(), adapter.decoder(call)
    events: list[ModelEvent] = []
    for piece in pieces:
        for frame in reader.feed(piece):
            events += decoder.decode(frame)
    for frame in reader.rest():
        events += decoder.decode(frame)
    assert decoder.complete
    return [_without_made_up_id(event) for event in (*events, *decoder.finish())]


def _without_made_up_id(event: ModelEvent) -> ModelEvent:
    """Ollama gives calls no id, so each gets a new one."""
    given = event.data.get("tool_call_id", "call_1")
    data = event.data if given == "call_1" else {**event.data, "tool_call_id": "made up"}
    return ModelEvent(event.event, data)


@pytest.mark.proves("providers.stream.utf8-split")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_at_every_byte(protocol: str) -> None:
    body = body_of(protocol)
    whole = decoded(protocol, [body])
    assert "ToolCallEnd" in names(whole) and "Usage" in names(whole)
    for at in range(1, len(body)):
        assert decoded(protocol, [body[:at], body[at:]]) == whole, at
    assert decoded(protocol, [bytes([byte]) for byte in body]) == whole


@pytest.mark.proves("providers.stream.utf8-split")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_single_bytes_over_a_socket(bench: Bench, protocol: str) -> None:
    target = await bench.target(protocol)
    made = fake(protocol).stream(TURN)
    bench.upstream.answers.append(made)
    whole = await bench.stream(target, SEARCHING)
    body = body_of(protocol)
    bench.upstream.answers.append(
        Answer(pieces=[bytes([byte]) for byte in body], content_type=made.content_type)
    )
    cut = await bench.stream(target, SEARCHING)
    assert [*map(_without_made_up_id, cut)] == [*map(_without_made_up_id, whole)]
    assert names(whole)[-1] == "Done"


@pytest.mark.proves("providers.stream.utf8-split")
async def test_cuts_of_a_small_stream_over_a_socket(bench: Bench) -> None:
    target = await bench.target("ollama")
    made, body = fake("ollama").stream(SMALL), body_of("ollama", SMALL)
    bench.upstream.answers.append(made)
    whole = await bench.stream(target)
    # Around each character of several bytes, around the line's end, and here and there.
    near = {
        at + shift for at, byte in enumerate(body) if byte > 127 or byte == 10 for shift in (0, 1)
    }
    for at in sorted((near | set(range(1, len(body), 16))) - {0, len(body)}):
        bench.upstream.answers.append(made.split(at))
        assert await bench.stream(target) == whole, at


LINES = [b"\n", b"\r\n", b"\r"]


@given(
    pieces=st.lists(
        st.sampled_from(["data: é🌏", "data:x", "event: e", ": c", "", "id: 1", "data", "研"]),
        max_size=12,
    ),
    ends=st.lists(st.sampled_from(LINES), min_size=12, max_size=12),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_lines_with_any_ends_cut_anywhere(
    pieces: list[str], ends: list[bytes], cuts: list[int]
) -> None:
    body = b"".join(piece.encode() + end for piece, end in zip(pieces, ends, strict=False))
    whole = SseReader()
    expected = [*whole.feed(body), *whole.rest()]
    cut, reader, at = [], SseReader(), 0
    for stop in sorted({min(place, len(body)) for place in cuts}):
        cut += reader.feed(body[at:stop])
        at = stop
    cut += [*reader.feed(body[at:]), *reader.rest()]
    assert cut == expected


def test_an_event_of_several_data_lines_and_a_byte_order_mark() -> None:
    reader = SseReader()
    body = b"\xef\xbb\xbfevent: a\ndata: 1\ndata: 2\n\n: comment\n\ndata:3"
    assert reader.feed(body) == [Frame("1\n2", "a")]
    assert reader.rest() == [Frame("3")]


def test_lines_of_json_without_a_last_end() -> None:
    reader = NdjsonReader()
    assert reader.feed(b'{"a":1}\r\n\r\n{"b"') == [Frame('{"a":1}')]
    assert reader.feed(b":2}") == []
    assert reader.rest() == [Frame('{"b":2}')]


def test_characters_whose_halves_come_apart() -> None:
    joined = WholeCharacters()
    assert joined.feed("a\ud83c") == "a"
    assert joined.feed("\udf0fb") == "🌏b"
    assert joined.feed("\udf0f") == "\ufffd"
    assert joined.feed("\ud83c") == "" and joined.rest() == "\ufffd"


async def test_half_characters_in_a_stream_are_joined(bench: Bench) -> None:
    target = await bench.target()
    chunks = [
        json.dumps({"choices": [{"index": 0, "delta": {"content": half}}]})
        for half in ("地\ud83c", "\udf0f球")
    ]
    end = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = "".join(f"data: {chunk}\n\n" for chunk in [*chunks, end]).encode()
    bench.upstream.answers.append(Answer(pieces=[body], content_type="text/event-stream"))
    events = await bench.stream(target)
    assert [event.data["text"] for event in events[:-1]] == ["地", "🌏球"]


def think(pieces: Iterable[str]) -> tuple[str, str]:
    tags = ThinkTags()
    events = [event for piece in pieces for event in tags.feed(piece)] + list(tags.rest())
    return tuple(  # type: ignore[return-value]
        "".join(event.data["text"] for event in events if event.event == name)
        for name in ("ThinkingDelta", "TextDelta")
    )


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>\n想</think>\n\n答", "想", "答"),
        ("\n<think>想 < b </ c</think>答</think>", "想 < b </ c", "答</think>"),
        ("答 <think>不是</think>", "", "答 <think>不是</think>"),
        ("<thin", "", "<thin"),
        ("  直接", "", "  直接"),
        ("<think>没有结束", "没有结束", ""),
        ("<think></think>\n\n1. 一", "", "1. 一"),
    ],
)
def test_thinking_between_tags_cut_anywhere(text: str, thinking: str, answer: str) -> None:
    assert think([text]) == (thinking, answer)
    assert think(text) == (thinking, answer)
    for at in range(1, len(text)):
        assert think([text[:at], text[at:]]) == (thinking, answer), at
