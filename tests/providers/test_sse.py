"""A provider's stream as a client follows it: over HTTP, through the edge that all model streams share."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Response

from sidecar.kernel.catalogue import use_locale
from sidecar.kernel.http.server import HttpServer, bind_loopback
from sidecar.kernel.http.sse import model_stream
from tests.fakes.upstream import Answer, Call, Turn
from tests.providers.bench import HELLO, PROTOCOLS, SEARCHING, Bench, fake

TURN = Turn(text=["从前", "有座山"], thinking=["想"], usage=(2, 3))
FIELDS = {
    "TextDelta": {"text"},
    "ThinkingDelta": {"text"},
    "ToolCallStart": {"tool_call_id", "name"},
    "ToolCallDelta": {"tool_call_id", "arguments_delta"},
    "ToolCallEnd": {"tool_call_id", "name", "arguments", "status"},
    "Usage": {"input_tokens", "output_tokens", "total_tokens"},
    "Error": {"code", "message", "details"},
    "Done": {"status", "finish_reason"},
}


@contextlib.asynccontextmanager
async def edge(bench: Bench, protocol: str, *, heartbeat: float = 12.0) -> AsyncIterator[Any]:
    """A server with one path that streams a model's answer."""
    target = await bench.target(protocol)
    api = FastAPI()

    @api.post("/stream")
    async def stream() -> Response:
        events = bench.service.stream(target, SEARCHING)
        return model_stream(events, heartbeat_seconds=heartbeat)

    listener = bind_loopback(0)
    ready = asyncio.Event()
    server = HttpServer(api, ready.set)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait_for(ready.wait(), 10)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client:
            yield client
    finally:
        server.should_exit = True
        await serving


def frames(text: str) -> list[dict[str, Any]]:
    found = []
    for part in text.split("\n\n"):
        if not part or part.startswith(":"):
            continue
        name, data = part.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert found[-1]["event"] == name.removeprefix("event: ")
    return found


@pytest.mark.proves(
    "providers.stream.payloads",
    "providers.stream.event-types",
    "providers.stream.sequence",
    "providers.stream.envelope",
    "providers.adapter.no-vendor-shapes",
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_a_client_is_sent(bench: Bench, protocol: str) -> None:
    turn = Turn(text=["好"], thinking=["想"], calls=[Call("a", "rag_search", ["{}"])], usage=(2, 3))
    async with edge(bench, protocol) as client:
        bench.upstream.answers += [
            fake(protocol).stream(turn),
            fake(protocol).error_in_stream(TURN, "strange_vendor_code", "vendor words"),
        ]
        texts = [(await client.post("/stream")).text for _ in range(2)]
    for text in texts:
        told = frames(text)
        for frame in told:
            assert frame.keys() == {"event", "sequence", "data", "timestamp"}
            assert set(frame["data"]) == FIELDS[frame["event"]]
        sequences = [frame["sequence"] for frame in told]
        assert sequences == sorted(set(sequences))
        assert "vendor" not in text and "choices" not in text and "response." not in text
    assert {frame["event"] for text in texts for frame in frames(text)} == set(FIELDS)


@pytest.mark.proves("providers.stream.cancel-upstream", "providers.stream.no-done-after-disconnect")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_client_that_goes_takes_the_provider_with_it(bench: Bench, protocol: str) -> None:
    made = fake(protocol).stream(TURN)
    body = b"".join(made.pieces)
    at = body.index("有座山".encode())
    bench.upstream.answers.append(
        Answer(pieces=[body[:at]], content_type=made.content_type, end="hold")
    )
    async with edge(bench, protocol) as client, client.stream("POST", "/stream") as answer:
        async for text in answer.aiter_text():
            if "从前" in text:
                break
        await answer.aclose()
        assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 1)
    rows = await bench.attempts()
    assert [row["status"] for row in rows] == ["cancelled"]


@pytest.mark.proves("providers.stream.heartbeat")
async def test_silence_of_the_provider_is_filled(bench: Bench) -> None:
    bench.upstream.answers.append(Answer(content_type="text/event-stream", end="hold"))
    async with (
        edge(bench, "openai_chat", heartbeat=0.02) as client,
        client.stream("POST", "/stream") as answer,
    ):
        received = ""
        async for text in answer.aiter_text():
            received += text
            if received.count(": heartbeat\n\n") >= 3:
                break
        assert received.replace(": heartbeat\n\n", "") == ""


@pytest.mark.proves("providers.stream.not-resumable")
async def test_a_stream_is_not_resumed(bench: Bench) -> None:
    async with edge(bench, "openai_chat") as client:
        bench.upstream.answers += [fake("openai_chat").stream(TURN)] * 2
        whole = frames((await client.post("/stream")).text)
        again = frames(
            (await client.post("/stream?after_sequence=3", headers={"Last-Event-ID": "3"})).text
        )
    assert [frame["data"] for frame in again] == [frame["data"] for frame in whole]
    assert again[0]["sequence"] == 1
    assert len(bench.upstream.received) == 2


async def test_what_is_wrong_is_told_in_the_language_of_the_reader(bench: Bench) -> None:
    target = await bench.target()
    bench.upstream.answers.append(fake("openai_chat").refusal(401, "x", "y"))
    with use_locale("zh-CN"):
        events = [event async for event in bench.service.stream(target, HELLO)]
    assert "密钥" in events[0].data["message"]
