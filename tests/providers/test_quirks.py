"""What servers tell otherwise than the protocol says is understood, and what they refuse is left out."""

import json
from typing import Any

import pytest

from sidecar.providers.schemas.model_call import ModelRequest
from tests.fakes.upstream import Answer, Call, Turn, sse
from tests.providers.bench import (
    HELLO,
    SEARCHING,
    Bench,
    calls,
    failure,
    fake,
    joined,
    names,
)


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def tool_chunk(**piece: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [piece]})


END = chunk({}, "tool_calls")


async def streamed(bench: Bench, *chunks: Any, done: bool = True, **target: Any) -> list[Any]:
    made = await bench.target(**target)
    bench.upstream.answers.append(
        Answer(pieces=[sse(*chunks, done=done)], content_type="text/event-stream")
    )
    return await bench.stream(made, SEARCHING)


NAME = "rag_search"

DEVIATIONS: dict[str, list[dict[str, Any]]] = {
    "no index": [
        tool_chunk(id="a", function={"name": NAME, "arguments": '{"q"'}),
        tool_chunk(id="a", function={"arguments": ": 1}"}),
    ],
    "no index and no id but the first": [
        tool_chunk(id="a", function={"name": NAME, "arguments": ""}),
        tool_chunk(function={"arguments": '{"q": '}),
        tool_chunk(function={"arguments": "1}"}),
    ],
    "no id at all": [
        tool_chunk(index=0, function={"name": NAME, "arguments": '{"q": 1}'}),
    ],
    "arguments before the name": [
        tool_chunk(index=0, id="a", function={"arguments": '{"q"'}),
        tool_chunk(index=0, function={"name": NAME, "arguments": ": 1}"}),
    ],
    "the name again and again": [
        tool_chunk(index=0, id="a", function={"name": NAME, "arguments": '{"q"'}),
        tool_chunk(index=0, id="a", function={"name": NAME, "arguments": ": 1}"}),
    ],
    "the name in pieces": [
        tool_chunk(index=0, id="a", function={"name": "rag_", "arguments": ""}),
        tool_chunk(index=0, function={"name": "search", "arguments": ""}),
        tool_chunk(index=0, function={"arguments": '{"q": 1}'}),
    ],
    "an empty object first": [
        tool_chunk(index=0, id="a", function={"name": NAME, "arguments": "{}"}),
        tool_chunk(index=0, function={"arguments": '{"q": 1}'}),
    ],
    "an object instead of text": [
        tool_chunk(index=0, id="a", function={"name": NAME, "arguments": {"q": 1}}),
    ],
    "nulls everywhere": [
        chunk({"role": "assistant", "content": None, "tool_calls": None}),
        tool_chunk(index=0, id="a", type=None, function={"name": NAME, "arguments": None}),
        tool_chunk(index=0, id=None, function={"name": None, "arguments": '{"q": 1}'}),
    ],
    "empty choices between": [
        {"choices": [], "prompt_filter_results": []},
        tool_chunk(index=0, id="a", function={"name": NAME, "arguments": '{"q": 1}'}),
        {"choices": []},
    ],
}


@pytest.mark.parametrize("deviation", DEVIATIONS)
async def test_a_tool_call_told_otherwise(bench: Bench, deviation: str) -> None:
    events = await streamed(bench, *DEVIATIONS[deviation], END)
    assert calls(events) == [("rag.search", {"q": 1})]
    starts = [event.data for event in events if event.event == "ToolCallStart"]
    assert len(starts) == 1 and starts[0]["name"] == "rag.search"
    ids = {event.data["tool_call_id"] for event in events if "tool_call_id" in event.data}
    assert len(ids) == 1 and ids.pop()
    assert events[-1].data == {"status": "completed", "finish_reason": "tool_calls"}


@pytest.mark.proves("providers.stream.tool-delta-aggregation")
async def test_interleaved_pieces_of_two_calls_without_index(bench: Bench) -> None:
    events = await streamed(
        bench,
        tool_chunk(id="a", function={"name": NAME, "arguments": '{"q"'}),
        tool_chunk(id="b", function={"name": NAME, "arguments": '{"r"'}),
        tool_chunk(id="a", function={"arguments": ": 1}"}),
        tool_chunk(id="b", function={"arguments": ": 2}"}),
        END,
    )
    assert calls(events) == [("rag.search", {"q": 1}), ("rag.search", {"r": 2})]
    for call_id, whole in (("a", '{"q": 1}'), ("b", '{"r": 2}')):
        deltas = [
            event.data["arguments_delta"]
            for event in events
            if event.event == "ToolCallDelta" and event.data["tool_call_id"] == call_id
        ]
        assert "".join(deltas) == whole


async def test_two_calls_under_one_index(bench: Bench) -> None:
    events = await streamed(
        bench,
        tool_chunk(index=0, id="a", function={"name": NAME, "arguments": '{"q": 1}'}),
        tool_chunk(index=0, id="b", function={"name": NAME, "arguments": '{"q": '}),
        tool_chunk(index=0, id="b", function={"arguments": "2}"}),
        END,
    )
    assert calls(events) == [("rag.search", {"q": 1}), ("rag.search", {"q": 2})]


@pytest.mark.parametrize("left_out", ["output_index", "id"])
async def test_items_of_responses_known_by_place_or_by_id(bench: Bench, left_out: str) -> None:
    target = await bench.target("openai_responses")
    turn = Turn(calls=[Call("a", NAME, ['{"q"', ": 1}"]), Call("b", NAME, ['{"q": ', "2}"])])
    told = json.loads(json.dumps(fake("openai_responses").frames(turn)))
    for event in told:
        event.pop(left_out, None)
        if left_out != "output_index":
            event.get("item", {}).pop("id", None)
            event.pop("item_id", None)
    bench.upstream.answers.append(
        Answer(pieces=[sse(*told, named=True)], content_type="text/event-stream")
    )
    events = await bench.stream(target, SEARCHING)
    assert calls(events) == [("rag.search", {"q": 1}), ("rag.search", {"q": 2})]


async def test_a_server_that_refuses_everything_is_left_alone(bench: Bench) -> None:
    target = await bench.target()
    words = "stream_options temperature max_tokens max_completion_tokens"
    bench.upstream.respond = lambda _: fake("openai_chat").refusal(400, "x", words)
    request = ModelRequest(HELLO.messages, max_output_tokens=7, temperature=0.1)
    assert failure(await bench.stream(target, request)) == "PROVIDER_PROTOCOL_ERROR"
    assert len(bench.upstream.received) == 4


async def test_a_call_that_is_never_named_is_invalid(bench: Bench) -> None:
    events = await streamed(bench, tool_chunk(index=0, id="a", function={"arguments": "{}"}), END)
    assert failure(events) == "PROVIDER_INVALID_RESPONSE"


@pytest.mark.proves("providers.stream.thinking-mapped")
@pytest.mark.parametrize(
    "pieces",
    [
        [{"reasoning_content": "想"}, {"reasoning_content": "", "content": "答"}],
        [{"reasoning": "想"}, {"content": "答"}],
        [{"reasoning_details": [{"type": "reasoning.text", "text": "想"}]}, {"content": "答"}],
        [{"reasoning": "想", "reasoning_details": [{"text": "想"}]}, {"content": "答"}],
        [{"content": "<thi"}, {"content": "nk>想</th"}, {"content": "ink>\n\n答"}],
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "想"}]}]},
            {"content": [{"type": "text", "text": "答"}]},
        ],
    ],
    ids=["reasoning_content", "reasoning", "details", "both", "tags", "parts"],
)
async def test_thinking_under_any_name(bench: Bench, pieces: list[dict[str, Any]]) -> None:
    events = await streamed(bench, *map(chunk, pieces), chunk({}, "stop"))
    assert joined(events, "ThinkingDelta") == "想"
    assert joined(events) == "答"


@pytest.mark.proves("providers.stream.usage-fields")
@pytest.mark.parametrize(
    "chunks",
    [
        [
            chunk({"content": "a"}),
            chunk({}, "stop", usage={"prompt_tokens": 2, "completion_tokens": 3}),
        ],
        [
            {
                "choices": [
                    {
                        "delta": {},
                        "finish_reason": "stop",
                        "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5},
                    }
                ]
            }
        ],
        [chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 2, "completion_tokens": 3}})],
        [
            chunk({"content": "a"}, usage={"prompt_tokens": 2, "completion_tokens": 1}),
            chunk({}, "stop", usage={"prompt_tokens": 2, "completion_tokens": 3}),
        ],
        [chunk({}, "stop", usage=None), {"usage": {"prompt_tokens": 2, "completion_tokens": 3}}],
    ],
    ids=["last", "in the choice", "x_groq", "in each", "alone"],
)
async def test_usage_from_any_place_once(bench: Bench, chunks: list[Any]) -> None:
    events = await streamed(bench, *chunks)
    usages = [event.data for event in events if event.event == "Usage"]
    assert usages == [{"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}]
    assert names(events)[-2:] == ["Usage", "Done"]


@pytest.mark.proves("providers.stream.usage-not-guessed")
@pytest.mark.parametrize(
    "usage", [{}, {"total_tokens": 9}, {"prompt_tokens": 1}, {"prompt_tokens": "1"}, []]
)
async def test_half_a_usage_is_none(bench: Bench, usage: Any) -> None:
    events = await streamed(bench, chunk({"content": "a"}), chunk({}, "stop", usage=usage))
    assert "Usage" not in names(events) and events[-1].data["status"] == "completed"
    row = (await bench.attempts())[-1]
    assert (row["input_tokens"], row["output_tokens"], row["total_tokens"]) == (None, None, None)


async def test_a_server_that_does_not_stream(bench: Bench) -> None:
    target = await bench.target()
    turn = Turn(text=["答"], thinking=["想"], calls=[Call("a", NAME, ['{"q": 1}'])], usage=(1, 2))
    bench.upstream.answers.append(fake("openai_chat").whole(turn))
    events = await bench.stream(target, SEARCHING)
    assert names(events) == [
        *("ThinkingDelta", "TextDelta", "ToolCallStart", "ToolCallDelta", "ToolCallEnd"),
        *("Usage", "Done"),
    ]
    assert events[-1].data == {"status": "completed", "finish_reason": "tool_calls"}
    assert (await bench.attempts())[-1]["total_tokens"] == 3


async def test_comments_and_keep_alives_are_nothing(bench: Bench) -> None:
    target = await bench.target()
    body = b": OPENROUTER PROCESSING\n\n\n\ndata: \n\n" + sse(
        chunk({"content": "答"}), chunk({}, "stop"), done=True
    )
    bench.upstream.answers.append(Answer(pieces=[body], content_type="text/event-stream"))
    assert names(await bench.stream(target)) == ["TextDelta", "Done"]


async def test_an_error_in_an_answer_of_status_200(bench: Bench) -> None:
    body = {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}
    events = await streamed(bench, body)
    assert failure(events) == "PROVIDER_RATE_LIMITED"


async def test_an_option_that_is_refused_is_left_out(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers += [
        fake("openai_chat").refusal(422, "extra_forbidden", "stream_options: Extra inputs"),
        fake("openai_chat").stream(Turn(text=["好"])),
    ]
    assert joined(await bench.stream(target)) == "好"
    sent = [request.json for request in bench.upstream.received]
    assert sent[0].pop("stream_options") == {"include_usage": True}
    assert sent[0] == sent[1]


async def test_the_other_name_of_the_limit_is_tried(bench: Bench) -> None:
    target = await bench.target()
    words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    bench.upstream.answers += [
        fake("openai_chat").refusal(400, "unsupported_parameter", words),
        fake("openai_chat").whole(Turn(text=["好"])),
    ]
    request = ModelRequest(HELLO.messages, max_output_tokens=7)
    assert (await bench.complete(target, request)).content == "好"
    assert bench.upstream.received[0].json["max_tokens"] == 7
    assert bench.upstream.received[1].json["max_completion_tokens"] == 7
