"""A chat with a real model, served by a real llama.cpp."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chat.conftest import Chat, eventually, running_chat
from tests.fakes.upstream import fake_upstream
from tests.providers.real_server import needs_real_server, real_server

pytestmark = needs_real_server

SURE = [
    {"op": "set", "path": "/temperature", "value": 0},
    {"op": "set", "path": "/max_tokens", "value": 60},
]
"""The same short answer every time."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_chat(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    """An application whose provider is the real server."""
    folder = tmp_path_factory.mktemp("chat")
    with real_server(tmp_path_factory.mktemp("llama")) as url, fake_upstream() as unused:
        async with running_chat(folder, unused) as running:
            running.provider_id = await running.provider(
                "chat", "streaming", base_url=url, request_overrides=SURE
            )
            yield running


async def test_a_conversation_goes_on(chat: Chat) -> None:
    talk = await chat.conversation()
    question = "What is the capital of France? Answer in one short sentence."
    told = await chat.ask(question, conversation_id=talk, model=await model_of(chat))
    assert "Paris" in told.text and told.names.count("TextDelta") > 3
    assert (told.done["status"], told.done["finish_reason"]) == ("completed", "stop")
    (usage,) = told.named("Usage")
    assert usage.data["output_tokens"] > 3
    again = await chat.ask(
        "Which country did I ask about?", conversation_id=talk, model=await model_of(chat)
    )
    (more,) = again.named("Usage")
    assert more.data["input_tokens"] > usage.data["input_tokens"] + 10
    assert "France" in again.text
    assert [message["content"] for message in await chat.messages(talk)][1::2] == [
        told.text,
        again.text,
    ]


async def test_the_open_file_is_read(chat: Chat) -> None:
    context = {
        "file_path": "Travel.md",
        "content": "The hotel is called Havnen and the booking code is QX-7719.",
    }
    told = await chat.ask(
        "What is the booking code of the hotel?",
        workspace_context=context,
        model=await model_of(chat),
    )
    assert "QX-7719" in told.text


async def test_it_stops_when_its_reader_goes(chat: Chat) -> None:
    talk = await chat.conversation()
    model = await model_of(chat)
    async with chat.reading("Tell a long story.", conversation_id=talk, model=model) as stream:
        while len(stream.told.text) < 40:
            await stream.next()
    await eventually(lambda: not chat.app.services.chat._running)
    _, reply = await chat.messages(talk)
    assert reply["status"] == "cancelled" and reply["content"].startswith(stream.told.text)
    # It does one thing at a time: the next answer comes since the story has ended.
    assert (await chat.ask("Say yes.", model=model)).done["status"] == "completed"


async def test_it_never_gets_more_than_it_takes(chat: Chat) -> None:
    talk = await chat.conversation()
    model = await model_of(chat)
    await chat.ask("Say yes. " + "word " * 250, conversation_id=talk, model=model)
    told = await chat.ask("Say no. " + "word " * 650, conversation_id=talk, model=model)
    assert told.done["status"] == "completed"
    assert "history_truncated" in told.kinds()
    told = await chat.ask("word " * 9000, model=model)
    assert told.error["code"] == "MODEL_CONTEXT_LENGTH_EXCEEDED"


async def model_of(chat: Chat) -> str:
    """The model that the server lists."""
    answer = await chat.app.http.get(f"/api/providers/{chat.provider_id}/models")
    model: str = answer.json()["items"][0]["model"]
    return model
