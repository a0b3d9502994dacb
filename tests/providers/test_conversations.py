"""A conversation is sent as each protocol and each vendor wants it, with what they signed."""

import json
from typing import Any

import pytest

from sidecar.providers.protocols.adapter import ChatCall
from sidecar.providers.protocols.adapters import ADAPTERS
from sidecar.providers.protocols.profiles import DEFAULT, PROFILES, profile_of
from sidecar.providers.schemas.model_call import Message, ModelRequest, ToolCall
from tests.fakes.upstream import Call, Turn
from tests.providers.bench import (
    HELLO,
    SEARCH,
    SEARCHING,
    Bench,
    calls,
    fake,
    joined,
)
from tests.providers.test_quirks import END, NAME, streamed, tool_chunk

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
