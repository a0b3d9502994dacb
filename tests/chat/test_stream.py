"""The stream of one answer, over all its rounds, and what is kept of it."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from sidecar.chat import turn as turn_module
from tests.chat.conftest import (
    Chat,
    Told,
    eventually,
    hanging,
    running_chat,
    searching,
)
from tests.fakes import openai_chat
from tests.fakes.upstream import Call, FakeUpstream, Turn


@pytest.mark.proves(
    "chat.stream.continuous-sequence",
    "chat.stream.single-done",
    "chat.stream.usage-sum",
    "chat.stream.tool-end-status",
)
async def test_one_stream_over_all_rounds(chat: Chat) -> None:
    await chat.note("Quantum", "A quantum is 20 ms.")
    chat.says(
        searching("quantum", text=["a"], thinking=["hm"], usage=(100, 10)),
        Turn(text=["b"], calls=[Call("x", "unknown")], usage=(200, 20)),
        Turn(text=["c"], usage=(300, 30)),
    )
    told = await chat.ask(use_rag=True)
    sequences = [event.sequence for event in told.events]
    assert sequences == sorted(set(sequences)) == list(range(1, len(sequences) + 1))
    assert told.done["status"] == "completed"
    (usage,) = told.named("Usage")
    assert usage.data == {"input_tokens": 600, "output_tokens": 60, "total_tokens": 660}
    assert told.names[-2:] == ["Usage", "Done"]
    assert told.ends() == ["completed", "failed"]


@pytest.mark.proves("chat.stream.usage-partial")
async def test_usage_is_what_was_reported(chat: Chat) -> None:
    chat.says(searching("a"), searching("b", usage=(7, 3)), Turn(text=["x"]))
    (usage,) = (await chat.ask(use_rag=True)).named("Usage")
    assert usage.data == {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    chat.says(searching("a"), Turn(text=["x"]))
    assert not (await chat.ask(use_rag=True)).named("Usage")


@pytest.mark.proves("chat.stream.paragraph-boundary")
async def test_streamed_text_is_the_stored_text(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    chat.says(
        searching("one", text=["\n\nLet me", " look.\n\n"]),
        searching("two", text=["\n"]),
        Turn(text=["\nFound", " it.\n", "\n- item\n\n"]),
    )
    told = await chat.ask(use_rag=True, conversation_id=conversation_id)
    assert told.text == "Let me look.\n\nFound it.\n\n- item"
    assert (await chat.contents(conversation_id))[-1] == told.text


@pytest.mark.proves("chat.stream.cancelled-kept", "providers.stream.cancel-upstream")
async def test_leaving_keeps_what_has_come(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    chat.says(
        searching("one", text=["so far"], thinking=["I think"]),
        hanging(Turn(text=["and then"], thinking=[" on"])),
    )
    async with chat.reading("why?", use_rag=True, conversation_id=conversation_id) as stream:
        while stream.told.text != "so far\n\nand then":
            await stream.next()
    assert await asyncio.to_thread(chat.received[1].hung_up.wait, 10)
    await eventually(lambda: not chat.app.services.chat._running)
    question, reply = await chat.messages(conversation_id)
    assert question["content"] == "why?"
    assert (reply["content"], reply["thinking"]) == ("so far\n\nand then", "I think on")
    assert (reply["status"], reply["error_code"]) == ("cancelled", None)
    assert [call["status"] for call in reply["tool_calls"]] == ["completed"]
    assert [item["type"] for item in reply["activity"]] == ["thinking", "tool_call", "thinking"]
    chat.says(Turn(text=["hello"]))
    await chat.ask("go on", conversation_id=conversation_id)
    said = [message["content"] for message in chat.sent[-1]["messages"]]
    assert said == ["why?", "so far\n\nand then", "go on"]


@pytest.mark.proves("providers.stream.no-done-after-disconnect")
async def test_leaving_a_chat_that_is_not_stored(chat: Chat) -> None:
    chat.says(hanging(Turn(text=["so far"])))
    async with chat.reading() as stream:
        await stream.until("TextDelta")
    assert await asyncio.to_thread(chat.received[0].hung_up.wait, 10)
    await eventually(lambda: not chat.app.services.chat._running)


@pytest.mark.proves(
    "chat.post.persist-both",
    "chat.messages.fields",
    "chat.activity.order",
    "chat.activity.persistence",
    "chat.activity.details-in-tool-calls",
)
async def test_all_of_a_reply_outlives_a_restart(tmp_path: Path, upstream: FakeUpstream) -> None:
    async with running_chat(tmp_path, upstream) as chat:
        await chat.note("Quantum", "A quantum is 20 ms.")
        conversation_id = await chat.conversation()
        chat.says(
            searching("quantum", text=["Let me look."], thinking=["I ", "should look"]),
            Turn(text=["20 ms [1]."], thinking=["Now I know"]),
        )
        await chat.ask("how long?", use_rag=True, conversation_id=conversation_id)
        before = await chat.messages(conversation_id)
    async with running_chat(tmp_path, upstream) as chat:
        assert await chat.messages(conversation_id) == before
    question, reply = before
    for message in before:
        assert {
            *("message_id", "parent_message_id", "role", "content", "versions", "thinking"),
            *("tool_calls", "activity", "citations", "workspace_context", "attachments"),
            *("context_captured", "status", "created_at"),
        } <= set(message)
    assert question["content"] == "how long?" and question["status"] == "completed"
    assert reply["content"] == "Let me look.\n\n20 ms [1]." and reply["status"] == "completed"
    assert reply["thinking"] == "I should lookNow I know"
    assert reply["activity"] == [
        {"type": "thinking", "text": "I should look"},
        {"type": "tool_call", "tool_call_id": "call_1"},
        {"type": "thinking", "text": "Now I know"},
    ]
    (call,) = reply["tool_calls"]
    assert (call["tool_call_id"], call["name"]) == ("call_1", "rag.search")
    assert (call["arguments"], call["status"]) == ({"query": "quantum"}, "completed")
    assert reply["provider_id"] and reply["model"] == "m"


# -- thinking that goes back ---------------------------------------------------------------------


def strict(chat: Chat, *turns: Turn) -> None:
    """Answer as a model does that refuses to go on without its own thinking."""
    left = list(turns)

    def respond(request: Any) -> Any:
        for message in request.json["messages"]:
            if message.get("tool_calls") and not message.get("reasoning_content"):
                return openai_chat.refusal(400, "invalid_request", "reasoning_content is missing")
        return openai_chat.stream(left.pop(0))

    chat.upstream.respond = respond


@pytest.mark.proves("chat.reasoning.tool-continuation", "chat.reasoning.parallel-searches")
async def test_thinking_goes_back_with_the_calls(chat: Chat) -> None:
    strict(
        chat,
        searching("alpha", "beta", thinking=["First ", "I look ", "twice."]),
        searching("gamma", thinking=["Once more."]),
        Turn(text=["done"]),
    )
    told = await chat.ask(use_rag=True)
    assert told.done["status"] == "completed" and told.text == "done"
    *_, said, first, second = chat.sent[1]["messages"]
    assert said["reasoning_content"] == "First I look twice."
    ids = [call["id"] for call in said["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids and len(set(ids)) == 2
    thinking = [m.get("reasoning_content") for m in chat.sent[2]["messages"] if m.get("tool_calls")]
    assert thinking == ["First I look twice.", "Once more."]


@pytest.mark.proves("chat.reasoning.history", "chat.reasoning.absent")
async def test_thinking_of_earlier_replies_goes_back(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    chat.says(Turn(text=["1"], thinking=["I thought"]), Turn(text=["2"]), Turn(text=["3"]))
    for question in ("one", "two", "three"):
        await chat.ask(question, conversation_id=conversation_id)
    assert chat.sent[2]["messages"] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "1", "reasoning_content": "I thought"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "three"},
    ]


# -- ends that nobody asked for ------------------------------------------------------------------


@pytest.mark.proves("host.stop.chat-streams-close", "providers.stream.interrupted")
async def test_a_stop_closes_streams_properly(tmp_path: Path, upstream: FakeUpstream) -> None:
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        conversation_id = await chat.conversation()
        chat.says(hanging(Turn(text=["so far"])), hanging(Turn(text=["elsewhere"])))
        async with chat.reading(conversation_id=conversation_id) as stream, chat.reading() as other:
            await stream.until("TextDelta")
            await other.until("TextDelta")
            closing = asyncio.create_task(chat.app.services.close())
            for told in (await stream.rest(), await other.rest()):
                assert told.names == ["TextDelta", "Error", "Done"]
                assert told.error["code"] == "PROVIDER_STREAM_INTERRUPTED"
                assert told.done["status"] == "failed"
            await closing
        for received in chat.received:
            assert await asyncio.to_thread(received.hung_up.wait, 10)
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        _, reply = await chat.messages(conversation_id)
        assert (reply["content"], reply["status"]) == ("so far", "failed")
        assert reply["error_code"] == "PROVIDER_STREAM_INTERRUPTED"


async def test_an_unexpected_failure_is_told_without_its_text(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await chat.conversation()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret of the question")

    monkeypatch.setattr(chat.app.services.providers, "stream", broken)
    told = await chat.ask(conversation_id=conversation_id)
    assert told.names == ["Error", "Done"] and told.error["code"] == "INTERNAL_ERROR"
    assert "secret" not in str([event.data for event in told.events])
    assert (await chat.messages(conversation_id))[-1]["status"] == "failed"


async def test_who_leaves_before_the_stream_begins_leaves_nothing_open(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sidecar.chat.schemas import ChatRequest

    monkeypatch.setattr(turn_module, "UNREAD_SECONDS", 0.01)
    conversation_id = await chat.conversation()
    request = ChatRequest.model_validate(chat.body("why?", conversation_id=conversation_id))
    turn = await chat.app.services.chat.open(request)
    await asyncio.wait_for(turn.ended.wait(), 10)
    question, reply = await chat.messages(conversation_id)
    assert question["content"] == "why?" and reply["status"] == "cancelled"
    assert [event async for event in turn.events()] == [] and chat.received == []


async def test_many_chats_at_once_stay_apart(chat: Chat) -> None:
    def respond(request: Any) -> Any:
        question = request.json["messages"][-1]["content"]
        return openai_chat.stream(Turn(text=[f"{question} {number} " for number in range(50)]))

    chat.upstream.respond = respond

    async def one(number: int) -> None:
        conversation_id = await chat.conversation()
        told = await chat.ask(f"q{number}", conversation_id=conversation_id)
        assert told.text == "".join(f"q{number} {index} " for index in range(50))
        assert (await chat.contents(conversation_id))[-1] == told.text

    await asyncio.gather(*(one(number) for number in range(20)))


async def test_readers_may_leave_at_any_moment(chat: Chat) -> None:
    pieces = [f"{number} " for number in range(120)]
    chat.upstream.respond = lambda _: openai_chat.stream(Turn(text=pieces, thinking=["hm"]))
    moments = random.Random(4711)
    whole = "".join(pieces)

    async def one(leaves_after: int) -> None:
        talk = await chat.conversation()
        async with chat.reading(conversation_id=talk) as stream:
            for _ in range(leaves_after):
                await stream.next()
        seen = stream.told.text

        async def stored() -> bool:
            return len(await chat.messages(talk)) == 2

        await eventually(stored)
        question, reply = await chat.messages(talk)
        assert reply["parent_message_id"] == question["message_id"]
        # All that was shown is kept, and no more than was said.
        assert reply["content"].startswith(seen) and whole.startswith(reply["content"])
        ends = {"completed", "cancelled"} if reply["content"] == whole else {"cancelled"}
        assert reply["status"] in ends

    await asyncio.gather(*(one(moments.randint(0, 121)) for _ in range(20)))
    await eventually(lambda: not chat.app.services.chat._running)
    state = (await chat.app.http.get("/api/chat/conversations")).json()["items"]
    assert {item["active_response_id"] for item in state} == {None}


async def test_a_slow_reader_gets_everything(chat: Chat) -> None:
    chat.says(Turn(text=[f"{number:05} " + "x" * 200 for number in range(5000)]))
    async with chat.reading() as stream:
        await stream.next()
        await asyncio.sleep(0)
        told: Told = await stream.rest()
    assert told.done["status"] == "completed"
    assert [text[:5] for text in told.text.split("x" * 200)][:5000] == [
        f"{number:05}" for number in range(5000)
    ]
