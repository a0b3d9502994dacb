"""What vendors do differently is understood, and what they want is sent."""

import asyncio
import json
from typing import Any

import pytest

from sidecar.providers.protocols.adapter import ChatCall
from sidecar.providers.protocols.adapters import ADAPTERS
from sidecar.providers.protocols.profiles import DEFAULT, PROFILES, profile_of
from sidecar.providers.schemas.model_call import Message, ModelRequest, ToolCall, ToolDefinition
from sidecar.providers.protocols.tool_names import ToolNames
from tests.fakes.upstream import Answer, Call, Turn, sse
from tests.providers.bench import (
    HELLO,
    PROTOCOLS,
    SEARCH,
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


CONVERSATION = ModelRequest(
    (
        Message("system", "简短。"),
        Message("user", "查", images=("data:image/png;base64,iVBORw0KGgo=",)),
        Message(
            "assistant",
            "好。",
            tool_calls=(ToolCall("call_1", "rag.search", {"q": "死锁"}),),
            reasoning_content="想",
        ),
        Message("tool", "结果", tool_call_id="call_1"),
        Message("assistant", "没想就答"),
        Message("user", "再来"),
    ),
    tools=(SEARCH,),
    max_output_tokens=100,
    temperature=0.5,
)


@pytest.mark.proves("providers.messages.reasoning-content")
async def test_a_conversation_in_chat_completions(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers.append(fake("openai_chat").stream(Turn(text=["好"])))
    await bench.stream(target, CONVERSATION)
    body = bench.upstream.received[0].json
    assert body["messages"] == [
        {"role": "system", "content": "简短。"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "查"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        },
        {
            "role": "assistant",
            "content": "好。",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "rag_search", "arguments": '{"q":"死锁"}'},
                }
            ],
            "reasoning_content": "想",
        },
        {"role": "tool", "content": "结果", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "没想就答"},
        {"role": "user", "content": "再来"},
    ]
    assert body["tools"][0]["function"]["parameters"] == SEARCH.parameters
    assert (body["max_tokens"], body["temperature"], body["stream"]) == (100, 0.5, True)


async def test_a_conversation_in_responses(bench: Bench) -> None:
    target = await bench.target("openai_responses")
    bench.upstream.answers.append(fake("openai_responses").stream(Turn(text=["好"])))
    await bench.stream(target, CONVERSATION)
    body = bench.upstream.received[0].json
    kinds = [item.get("role") or item["type"] for item in body["input"]]
    assert kinds == [
        *("system", "user", "assistant", "function_call", "function_call_output"),
        *("assistant", "user"),
    ]
    assert body["input"][1]["content"][1]["type"] == "input_image"
    assert body["input"][3] == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "rag_search",
        "arguments": '{"q":"死锁"}',
    }
    assert body["store"] is False and body["max_output_tokens"] == 100


async def test_a_conversation_in_messages(bench: Bench) -> None:
    target = await bench.target("anthropic")
    bench.upstream.answers.append(fake("anthropic").stream(Turn(text=["好"])))
    await bench.stream(target, CONVERSATION)
    request = bench.upstream.received[0]
    body = request.json
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert body["system"] == "简短。" and body["max_tokens"] == 100
    assert [turn["role"] for turn in body["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert body["messages"][0]["content"][0]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "iVBORw0KGgo=",
    }
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "好。"},
        {"type": "tool_use", "id": "call_1", "name": "rag_search", "input": {"q": "死锁"}},
    ]
    assert body["messages"][2]["content"][0]["type"] == "tool_result"


async def test_a_conversation_in_ollama(bench: Bench) -> None:
    target = await bench.target("ollama")
    bench.upstream.answers.append(fake("ollama").stream(Turn(text=["好"])))
    await bench.stream(target, CONVERSATION)
    body = bench.upstream.received[0].json
    assert body["messages"][1] == {"role": "user", "content": "查", "images": ["iVBORw0KGgo="]}
    assert body["messages"][2]["tool_calls"] == [
        {"function": {"name": "rag_search", "arguments": {"q": "死锁"}}}
    ]
    assert body["messages"][2]["thinking"] == "想"
    assert body["messages"][3] == {"role": "tool", "content": "结果", "tool_name": "rag_search"}
    assert body["options"] == {"num_predict": 100, "temperature": 0.5}


async def test_what_one_signed_is_not_sent_to_another(bench: Bench) -> None:
    target = await bench.target("anthropic")
    bench.upstream.answers += [fake("anthropic").whole(Turn(thinking=["想"], text=["好"]))] * 2
    await bench.complete(target)
    other = await bench.target("anthropic", default_model="another")
    said = Message("assistant", "好", reasoning_content="想")
    await bench.complete(other, ModelRequest((*HELLO.messages, said, *HELLO.messages)))
    assert "signature" not in json.dumps(bench.upstream.received[1].json)


@pytest.mark.parametrize("streaming", [True, False])
async def test_signed_thinking_goes_back_with_its_call(bench: Bench, streaming: bool) -> None:
    target = await bench.target("anthropic")
    turn = Turn(thinking=["需要", "查"], calls=[Call("call_1", NAME, ["{}"])])
    answer = fake("anthropic").stream if streaming else fake("anthropic").whole
    bench.upstream.answers += [answer(turn), fake("anthropic").whole(Turn(text=["好"]))]
    if streaming:
        thinking = joined(await bench.stream(target, SEARCHING), "ThinkingDelta")
    else:
        thinking = (await bench.complete(target, SEARCHING)).reasoning_content or ""
    called = Message(
        "assistant",
        "",
        tool_calls=(ToolCall("call_1", "rag.search", {}),),
        reasoning_content=thinking,
    )
    result = Message("tool", "结果", tool_call_id="call_1")
    await bench.complete(target, ModelRequest((*SEARCHING.messages, called, result)))
    body = bench.upstream.received[1].json
    assert body["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "需要查",
        "signature": fake("anthropic").SIGNATURE,
    }
    # Called before, so declared, but not to be called any more.
    assert [tool["name"] for tool in body["tools"]] == [NAME]
    assert body["tool_choice"] == {"type": "none"}


async def test_the_signature_of_a_call_goes_back_with_it(bench: Bench) -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    events = await streamed(
        bench,
        tool_chunk(
            index=0, id="g1", extra_content=signature, function={"name": NAME, "arguments": "{}"}
        ),
        END,
    )
    assert calls(events) == [("rag.search", {})]
    target = await bench.target()
    bench.upstream.answers.append(fake("openai_chat").whole(Turn(text=["好"])))
    called = Message("assistant", "", tool_calls=(ToolCall("g1", "rag.search", {}),))
    await bench.complete(
        target, ModelRequest((*HELLO.messages, called, Message("tool", "", tool_call_id="g1")))
    )
    sent = bench.upstream.received[1].json["messages"][1]["tool_calls"][0]
    assert sent["extra_content"] == signature


@pytest.mark.proves("providers.messages.reasoning-content-nonstream")
async def test_the_thinking_of_a_whole_answer_is_kept_and_sent_back(bench: Bench) -> None:
    target = await bench.target()
    turn = Turn(thinking=["先", "查"], calls=[Call("call_1", NAME, ['{"q": 1}'])], usage=(1, 1))
    bench.upstream.answers += [
        fake("openai_chat").whole(turn),
        fake("openai_chat").whole(Turn(text=["好"])),
    ]
    reply = await bench.complete(target, SEARCHING)
    assert reply.reasoning_content == "先查"
    assert reply.tool_calls == (ToolCall("call_1", "rag.search", {"q": 1}),)
    said = Message(
        "assistant",
        reply.content,
        tool_calls=reply.tool_calls,
        reasoning_content=reply.reasoning_content,
    )
    result = Message("tool", "结果", tool_call_id="call_1")
    await bench.complete(target, ModelRequest((*SEARCHING.messages, said, result)))
    assert bench.upstream.received[1].json["messages"][1]["reasoning_content"] == "先查"


@pytest.mark.proves("providers.stream.tool-name-mapping")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["mcp.server-one.读取", "1st", "a" * 70, "notes.patch_markdown"])
async def test_names_of_tools_are_legal_outside_and_ours_inside(
    bench: Bench, protocol: str, name: str
) -> None:
    target = await bench.target(protocol)
    request = ModelRequest(HELLO.messages, tools=(ToolDefinition(name, "t", {"type": "object"}),))

    def respond(received: Any) -> Answer:
        (sent,) = fake(protocol).sent_tools(received.json)
        assert len(sent) <= 64 and sent.isascii()
        assert sent.replace("_", "").replace("-", "").isalnum() and not sent[0].isdigit()
        make = fake(protocol).stream if received.json["stream"] else fake(protocol).whole
        answer: Answer = make(Turn(calls=[Call("a", sent, ["{}"])]))
        return answer

    bench.upstream.respond = respond
    assert calls(await bench.stream(target, request)) == [(name, {})]
    assert [call.name for call in (await bench.complete(target, request)).tool_calls] == [name]


@pytest.mark.proves("providers.stream.tool-name-isolation")
def test_names_that_would_shorten_to_one_stay_apart() -> None:
    long = "mcp.server." + "x" * 60
    wanted = ["a.b", "a_b", "a b", f"{long}1", f"{long}2", "read", "notes.read", "notes_read"]
    mapped = ToolNames(wanted)
    sent = [mapped.sent(name) for name in wanted]
    assert len(set(sent)) == len(wanted)
    assert [mapped.ours(name) for name in sent] == wanted
    assert mapped.sent("a_b") == "a_b" and mapped.sent("read") == "read"
    assert all(len(name) <= 64 for name in sent)
    assert mapped.ours("made_up") == "made_up"


@pytest.mark.proves("providers.stream.tool-name-isolation")
async def test_requests_at_one_time_have_names_of_their_own(bench: Bench) -> None:
    target = await bench.target()

    def respond(received: Any) -> Answer:
        (sent,) = fake("openai_chat").sent_tools(received.json)
        assert sent == "a_b"
        answer: Answer = fake("openai_chat").stream(Turn(calls=[Call("x", sent, ["{}"])]))
        return answer

    bench.upstream.respond = respond
    tools = [ToolDefinition(name, "t", {"type": "object"}) for name in ("a.b", "a_b", "a b")]
    found = await asyncio.gather(
        *(bench.stream(target, ModelRequest(HELLO.messages, tools=(tool,))) for tool in tools)
    )
    assert [calls(events)[0][0] for events in found] == ["a.b", "a_b", "a b"]


def test_vendors_are_known_by_their_host() -> None:
    assert profile_of("https://api.deepseek.com/v1").name == "deepseek"
    assert profile_of("https://dashscope-intl.aliyuncs.com/compatible-mode/v1").name == "dashscope"
    assert profile_of("https://openrouter.ai/api/v1").name == "openrouter"
    for other in ("http://127.0.0.1:8000/v1", "https://notopenrouter.ai", "https://max.ai"):
        assert profile_of(other) is DEFAULT
    assert len({profile.name for profile in PROFILES}) == len(PROFILES)


async def test_what_a_vendor_refuses_is_not_sent() -> None:
    adapter = ADAPTERS["openai_compatible"]

    def body(url: str) -> dict[str, Any]:
        call = ChatCall.of("m", CONVERSATION, profile_of(url))
        return adapter.chat_body(call, stream=True)

    mistral = json.dumps(body("https://api.mistral.ai/v1"))
    assert "stream_options" not in mistral and "reasoning_content" not in mistral
    openai = body("https://api.openai.com/v1")
    assert openai["max_completion_tokens"] == 100 and "max_tokens" not in openai
    groq = body("https://api.groq.com/openai/v1")
    assert groq["messages"][2]["reasoning"] == "想"
    deepseek = body("https://api.deepseek.com")
    assert deepseek["messages"][2]["reasoning_content"] == "想"
    assert "reasoning_content" not in deepseek["messages"][4]
