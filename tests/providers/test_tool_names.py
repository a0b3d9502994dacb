"""Tools have names that a provider allows outside, and ours inside."""

import asyncio
from typing import Any

import pytest

from sidecar.providers.protocols.tool_names import ToolNames
from sidecar.providers.schemas.model_call import ModelRequest, ToolDefinition
from tests.fakes.upstream import Answer, Call, Turn
from tests.providers.bench import (
    HELLO,
    PROTOCOLS,
    Bench,
    calls,
    fake,
)


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
