"""The same turn over each protocol that models speak."""

import json
from typing import Any

import pytest

from tests.chat.conftest import Chat, searching
from tests.fakes import anthropic, ollama, openai_chat, openai_responses
from tests.fakes.upstream import Turn

every_protocol = pytest.mark.parametrize(
    "fake", [openai_chat, openai_responses, anthropic, ollama], ids=lambda fake: fake.PROVIDER_TYPE
)


async def provider(chat: Chat, fake: Any) -> dict[str, Any]:
    """The fields of a request to a provider of a protocol."""
    made = await chat.provider(*fake.CAPABILITIES, provider_type=fake.PROVIDER_TYPE)
    return {"provider_id": made, "use_rag": True}


@pytest.mark.proves("chat.retrieval.gate", "chat.retrieval.parallel-calls", "chat.stream.usage-sum")
@every_protocol
async def test_a_model_looks_things_up_and_cites(chat: Chat, fake: Any) -> None:
    for title in ("alpha", "beta"):
        await chat.note(title, f"the {title} text")
    talk = await chat.conversation()
    chat.says(
        fake.stream(searching("alpha", "beta", text=["Looking."], usage=(10, 5))),
        fake.stream(Turn(text=["It is ", "so [1][2]."], usage=(20, 6))),
    )
    told = await chat.ask(conversation_id=talk, **await provider(chat, fake))
    assert (told.done["status"], told.text) == ("completed", "Looking.\n\nIt is so [1][2].")
    assert told.ends() == ["completed", "completed"]
    assert [event.data["title"] for event in told.named("Citation")] == ["alpha", "beta"]
    (usage,) = told.named("Usage")
    assert (usage.data["input_tokens"], usage.data["output_tokens"]) == (30, 11)
    first, second = (received.json for received in chat.upstream.received[-2:])
    assert fake.sent_tools(first) == fake.sent_tools(second) and len(fake.sent_tools(first)) == 1
    sent = json.dumps(second)
    assert "the alpha text" in sent and "the beta text" in sent
    assert (await chat.messages(talk))[-1]["used_citations"] == [1, 2]


@pytest.mark.proves("chat.retrieval.limit-reached")
@every_protocol
async def test_searches_come_to_an_end(chat: Chat, fake: Any) -> None:
    chat.says(*(fake.stream(searching("word", text=["x"])) for _ in range(4)))
    told = await chat.ask(**await provider(chat, fake))
    assert told.done["finish_reason"] == "tool_limit" and told.ends() == ["completed"] * 3 + [
        "failed"
    ]
    assert len(chat.upstream.received) == 4


@every_protocol
async def test_thinking_is_shown_kept_and_no_answer(chat: Chat, fake: Any) -> None:
    talk = await chat.conversation()
    chat.says(fake.stream(Turn(thinking=["I ", "think"], text=["so"])))
    told = await chat.ask(conversation_id=talk, **await provider(chat, fake))
    assert "".join(event.data["text"] for event in told.named("ThinkingDelta")) == "I think"
    (_, reply) = await chat.messages(talk)
    assert (reply["thinking"], reply["content"]) == ("I think", "so") == ("I think", told.text)
