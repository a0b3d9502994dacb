"""A real model, served by a real llama.cpp."""

import asyncio
from collections.abc import Iterator

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.providers.schemas.model_call import ChatTarget, Message, ModelRequest
from tests.providers.bench import Bench, failure, joined, names
from tests.providers.real_server import needs_real_server, real_server

pytestmark = needs_real_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_server(tmp_path_factory.mktemp("llama")) as url:
        yield url


@pytest.fixture
async def target(bench: Bench, server: str) -> ChatTarget:
    listing = await bench.target(base_url=server, capabilities=["chat", "streaming"])
    (model,) = (await bench.service.models(listing.provider_id)).items
    return await bench.service.target(listing.provider_id, model.model)


def asking(text: str, limit: int) -> ModelRequest:
    return ModelRequest((Message("user", text),), max_output_tokens=limit, temperature=0.0)


async def test_it_lists_its_model(bench: Bench, target: ChatTarget) -> None:
    (model,) = (await bench.service.models(target.provider_id)).items
    assert model.display_name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert model.capabilities == ["chat", "streaming"]
    assert target.context_window and target.context_window >= 2048


@pytest.mark.proves(
    "providers.adapter.openai-chat",
    "providers.adapter.openai-responses",
    "providers.adapter.anthropic",
    "providers.stream.usage-fields",
)
@pytest.mark.parametrize("kind", ["openai_chat", "openai_responses", "anthropic"])
async def test_it_answers(bench: Bench, server: str, kind: str) -> None:
    target = await bench.target(base_url=server, provider_type=kind)
    request = asking("What is the capital of France? Answer in one short sentence.", 24)
    events = await bench.stream(target, request)
    assert set(names(events)) == {"TextDelta", "Usage", "Done"}
    assert names(events).count("TextDelta") > 3
    assert "Paris" in joined(events)
    usage = next(event.data for event in events if event.event == "Usage")
    assert 10 < usage["input_tokens"] < 100 and 0 < usage["output_tokens"] <= 24
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    reply = await bench.complete(target, request)
    assert reply.content == joined(events)
    assert reply.usage and reply.usage.output_tokens == usage["output_tokens"]
    assert [row["total_tokens"] for row in await bench.attempts()] == [usage["total_tokens"]] * 2


async def test_a_conversation_is_the_same_in_three_protocols(bench: Bench, server: str) -> None:
    messages = (
        Message("system", "You answer in English."),
        Message("user", "My name is Ada."),
        Message("assistant", "Hello Ada!"),
        Message("user", "Tell me a story."),
    )
    request = ModelRequest(messages, max_output_tokens=12, temperature=0.0)
    said, read = [], []
    for kind in ("openai_chat", "openai_responses", "anthropic"):
        target = await bench.target(base_url=server, provider_type=kind)
        reply = await bench.complete(target, request)
        assert reply.content == joined(await bench.stream(target, request))
        assert reply.usage
        said.append(reply.content)
        read.append(reply.usage.input_tokens)
    # The same model has read the same words.
    assert said[0] and set(said) == {said[0]}
    assert len(set(read)) == 1 and read[0] > 30


async def test_it_is_cut_short_by_the_limit(bench: Bench, target: ChatTarget) -> None:
    events = await bench.stream(target, asking("Count to one hundred.", 4))
    assert events[-1].data == {"status": "completed", "finish_reason": "length"}


@pytest.mark.proves("providers.errors.context-length")
async def test_it_refuses_what_is_too_long(bench: Bench, target: ChatTarget) -> None:
    events = await bench.stream(target, asking("word " * 5000, 4))
    assert failure(events) == "MODEL_CONTEXT_LENGTH_EXCEEDED"


@pytest.mark.proves("providers.stream.cancel-upstream")
async def test_it_stops_when_nobody_follows(bench: Bench, target: ChatTarget) -> None:
    # It does one thing at a time: had it gone on, the next answer would come a long time later.
    events = bench.service.stream(target, asking("Write a very long story.", 1900))
    async for event in events:
        if event.event == "TextDelta":
            break
    await events.aclose()
    async with asyncio.timeout(10):
        reply = await bench.complete(target, asking("Say yes.", 2))
    assert reply.content


@pytest.mark.proves("providers.errors.capability-mismatch")
async def test_it_has_no_eyes(bench: Bench, target: ChatTarget) -> None:
    request = ModelRequest((Message("user", "a", images=("data:image/png;base64,iVBORw0KGgo=",)),))
    with pytest.raises(ProjectError) as raised:
        await bench.complete(target, request)
    assert raised.value.code == "MODEL_CAPABILITY_MISMATCH"
