"""How a stream ends: once, whatever happens on the way."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sidecar.providers.calls.transport import Timeouts
from sidecar.providers.schemas.model_call import ModelEvent
from sidecar.providers.service import StreamControl
from tests.fakes.upstream import Answer, Call, Turn, sse
from tests.providers.bench import (
    HELLO,
    PROTOCOLS,
    SEARCHING,
    Bench,
    bench_in,
    failure,
    fake,
    joined,
    names,
)

TURN = Turn(text=["从前", "有座山"], usage=(2, 3))
QUIET = Timeouts(connect=5, first_byte=0.3, silence=0.3, whole=0.3)


def begun(protocol: str, end: str) -> Answer:
    """An answer that stops in the middle of its second line."""
    made: Answer = fake(protocol).stream(TURN)
    body = b"".join(made.pieces)
    at = body.index("有座山".encode()) + 4
    return Answer(pieces=[body[:at]], content_type=made.content_type, end=end)  # type: ignore[arg-type]


async def first_text(events: AsyncGenerator[ModelEvent, None]) -> None:
    async for event in events:
        if event.event == "TextDelta":
            assert event.data["text"] == "从前"
            return


@pytest.mark.proves("providers.stream.truncated", "providers.stream.done-failure-order")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("end", ["eof", "reset", "close"])
async def test_a_stream_that_breaks_off(bench: Bench, protocol: str, end: str) -> None:
    target = await bench.target(protocol)
    bench.upstream.answers.append(begun(protocol, end))
    events = await bench.stream(target)
    assert failure(events) == "PROVIDER_STREAM_TRUNCATED"
    assert joined(events) == "从前"
    assert events[-2].data["details"] == {"provider_id": target.provider_id, "model": "m"}
    assert [row["error_code"] for row in await bench.attempts()] == ["PROVIDER_STREAM_TRUNCATED"]
    assert len(bench.upstream.received) == 1, "what has begun is never repeated"


@pytest.mark.proves("providers.stream.truncated")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_place_where_a_stream_can_break_off(bench: Bench, protocol: str) -> None:
    target = await bench.target(protocol)
    made = fake(protocol).stream(Turn(text=["é好"]))
    body = b"".join(made.pieces)
    # Each line's end, and inside each line.
    places = sorted({at + shift for at in range(len(body)) if body[at] == 10 for shift in (-3, 1)})
    whole = 0
    for at in places:
        bench.upstream.answers.append(
            Answer(pieces=[body[:at]], content_type=made.content_type, end="eof")
        )
        events = await bench.stream(target)
        if events[-1].data["status"] == "completed":
            whole += 1
            assert joined(events) == "é好"
        else:
            assert failure(events) == "PROVIDER_STREAM_TRUNCATED"
            assert joined(events) in ("", "é好")
    # Complete only once the model has said why it stopped.
    assert 1 <= whole <= 6


async def test_an_answer_is_whole_without_the_closing_line_of_some(bench: Bench) -> None:
    target = await bench.target()
    chunks = fake("openai_chat").frames(TURN)
    bench.upstream.answers.append(
        Answer(pieces=[sse(*chunks)], content_type="text/event-stream", end="reset")
    )
    events = await bench.stream(target)
    assert names(events) == ["TextDelta", "TextDelta", "Usage", "Done"]
    assert events[-1].data == {"status": "completed", "finish_reason": "stop"}


@pytest.mark.proves("providers.stream.invalid-response")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("line", ['{"broken', "[1, 2]", '{"choices": [7]}', "null"])
async def test_a_message_that_is_none(bench: Bench, protocol: str, line: str) -> None:
    target = await bench.target(protocol)
    made = fake(protocol).stream(TURN)
    wrong = f"{line}\n" if protocol == "ollama" else f"data: {line}\n\n"
    bench.upstream.answers.append(
        Answer(pieces=[wrong.encode(), *made.pieces], content_type=made.content_type)
    )
    events = await bench.stream(target)
    assert failure(events) == "PROVIDER_INVALID_RESPONSE"
    assert names(events) == ["Error", "Done"]


@pytest.mark.proves("providers.stream.tool-arguments-object")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("arguments", ["[1]", '"text"', "7", '{"a": ', '{"a": NaN}'])
async def test_arguments_that_are_no_object(bench: Bench, protocol: str, arguments: str) -> None:
    target = await bench.target(protocol)
    good, bad = Call("a", "rag_search", ['{"q": 1}']), Call("b", "rag_search", [arguments])
    bench.upstream.answers.append(fake(protocol).stream(Turn(calls=[good, bad])))
    events = await bench.stream(target, SEARCHING)
    assert failure(events) == "PROVIDER_INVALID_RESPONSE"
    assert "ToolCallEnd" not in names(events), "nothing looks ready to be run"


@pytest.mark.proves("providers.stream.tool-arguments-empty")
@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic"])
@pytest.mark.parametrize("arguments", [[], [""], ["  "]])
async def test_empty_arguments_are_the_empty_object(
    bench: Bench, protocol: str, arguments: list[str]
) -> None:
    target = await bench.target(protocol)
    bench.upstream.answers.append(
        fake(protocol).stream(Turn(calls=[Call("a", "rag_search", arguments)]))
    )
    events = await bench.stream(target, SEARCHING)
    assert [e.data["arguments"] for e in events if e.event == "ToolCallEnd"] == [{}]
    assert events[-1].data["status"] == "completed"


@pytest.mark.proves("providers.stream.done-failure-order", "providers.stream.done-once")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        ("rate_limit_error", "Too many requests", "PROVIDER_RATE_LIMITED"),
        ("overloaded_error", "Overloaded", "PROVIDER_UNAVAILABLE"),
        (
            "invalid_request_error",
            "maximum context length is 8192",
            "MODEL_CONTEXT_LENGTH_EXCEEDED",
        ),
        ("strange", "Something else", "PROVIDER_PROTOCOL_ERROR"),
    ],
)
async def test_an_error_that_is_told_in_the_stream(
    bench: Bench, protocol: str, code: str, words: str, expected: str
) -> None:
    target = await bench.target(protocol)
    bench.upstream.answers.append(fake(protocol).error_in_stream(TURN, code, words))
    events = await bench.stream(target)
    assert failure(events) == expected
    assert joined(events) == "从前有座山"
    assert words not in json.dumps(events[-2].data)


@pytest.mark.proves("providers.stream.iterator-close", "providers.stream.cancel-upstream")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_closing_the_iterator_hangs_up(bench: Bench, protocol: str) -> None:
    target = await bench.target(protocol)
    bench.upstream.answers.append(begun(protocol, "hold"))
    events = bench.service.stream(target, HELLO)
    await first_text(events)
    await events.aclose()
    assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 1)
    assert [row["status"] for row in await bench.attempts()] == ["cancelled"]


@pytest.mark.proves("providers.stream.iterator-close", "providers.stream.no-done-after-disconnect")
async def test_cancelling_the_task_hangs_up_and_goes_on_to_the_caller(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers.append(begun("openai_chat", "hold"))
    seen: list[str] = []
    told = asyncio.Event()

    async def follow() -> None:
        async for event in bench.service.stream(target, HELLO):
            seen.append(event.event)
            told.set()

    task = asyncio.create_task(follow())
    await asyncio.wait_for(told.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 1)
    assert seen == ["TextDelta"]
    assert [row["status"] for row in await bench.attempts()] == ["cancelled"]


async def test_closing_before_the_answer_begins_hangs_up(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers.append(Answer(no_head=True, end="hold"))
    events = bench.service.stream(target, HELLO)
    waiting = asyncio.ensure_future(anext(events))
    assert await asyncio.to_thread(bench.upstream.arrived.wait, 10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 1)


@pytest.mark.proves("providers.stream.done-cancelled")
async def test_a_generation_that_is_cancelled_here_has_its_end(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers.append(begun("openai_chat", "hold"))
    control = StreamControl()
    events = bench.service.stream(target, HELLO, control=control)
    await first_text(events)
    control.cancel()
    rest = [event async for event in events]
    assert rest == [ModelEvent("Done", {"status": "cancelled", "finish_reason": None})]
    assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 1)


@pytest.mark.proves("providers.stream.interrupted")
async def test_a_stop_of_the_program_interrupts_what_is_streamed(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers.append(begun("openai_chat", "hold"))
    events = bench.service.stream(target, HELLO)
    await first_text(events)
    await bench.service.close()
    assert failure([event async for event in events]) == "PROVIDER_STREAM_INTERRUPTED"
    assert [row["error_code"] for row in await bench.attempts()] == ["PROVIDER_STREAM_INTERRUPTED"]


@pytest.mark.proves("providers.errors.timeout")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(no_head=True, end="hold"),
        Answer(content_type="text/event-stream", end="hold"),
        begun("openai_chat", "hold"),
    ],
    ids=["no head", "no first byte", "silence"],
)
async def test_silence_ends_a_stream(tmp_path: Path, answer: Answer) -> None:
    async with bench_in(tmp_path, timeouts=QUIET) as bench:
        target = await bench.target()
        bench.upstream.answers.append(answer)
        assert failure(await bench.stream(target)) == "PROVIDER_TIMEOUT"
        assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 5)


async def test_a_slow_follower_holds_the_provider_back_and_loses_nothing(bench: Bench) -> None:
    target = await bench.target()
    piece = "字" * 3000
    bench.upstream.answers.append(fake("openai_chat").stream(Turn(text=[piece] * 3000)))
    events = bench.service.stream(target, HELLO)
    first = await anext(events)
    for _ in range(200):
        await asyncio.sleep(0)
    rest = [event async for event in events]
    assert joined([first, *rest]) == piece * 3000
    assert rest[-1].data["status"] == "completed"


async def test_a_connection_is_used_again(bench: Bench) -> None:
    target = await bench.target()
    for _ in range(3):
        bench.upstream.answers.append(fake("openai_chat").stream(TURN))
        await bench.stream(target)
        await asyncio.gather(*bench.service.calls._draining.tasks)
    assert [request.closed.is_set() for request in bench.upstream.received] == [False] * 3
