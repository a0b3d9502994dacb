"""The server is killed, or told to stop, while it answers."""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from host_bridge.launcher import Sidecar
from tests.chat.conftest import Chat, Event, events_of, eventually, hanging, searching
from tests.conftest import LaunchSidecar
from tests.fakes import openai_chat
from tests.fakes.upstream import FakeUpstream, Turn

KILL = signal.SIGKILL if os.name != "nt" else signal.SIGTERM
CONVERSATIONS = "/api/chat/conversations"


def provider(sidecar: Sidecar, upstream: FakeUpstream) -> str:
    body = {
        "name": "Model server",
        "provider_type": "openai_compatible",
        "base_url": upstream.url,
        "capabilities": ["chat", "streaming", "tool_calling"],
    }
    provider_id: str = sidecar.post("/api/providers", json=body).check().json()["provider_id"]
    return provider_id


@contextlib.contextmanager
def asking(sidecar: Sidecar, body: dict[str, Any]) -> Iterator[Iterator[Event]]:
    """Ask, and yield the events one by one."""
    headers = {"Authorization": f"Bearer {sidecar.session_token}"}
    url = f"{sidecar.base_url}/api/chat"
    with (
        httpx.Client(timeout=20, trust_env=False) as client,
        client.stream("POST", url, json=body, headers=headers) as response,
    ):
        assert response.status_code == 200

        def events() -> Iterator[Event]:
            lines = response.iter_lines()
            for line in lines:
                if line.startswith("event: "):
                    yield events_of(f"{line}\n{next(lines)}")[0]

        yield events()


def messages(sidecar: Sidecar, conversation_id: str) -> list[dict[str, Any]]:
    path = f"{CONVERSATIONS}/{conversation_id}/messages"
    items: list[dict[str, Any]] = sidecar.get(path).check().json()["items"]
    return items


@pytest.mark.proves("chat.versions.crash-partial", "chat.versions.restart")
def test_killed_while_answering(launch_sidecar: LaunchSidecar, upstream: FakeUpstream) -> None:
    sidecar = launch_sidecar(models=False)
    provider_id = provider(sidecar, upstream)
    talk = sidecar.post(CONVERSATIONS, json={}).check().json()["conversation_id"]
    body = {
        "provider_id": provider_id,
        "model": "m",
        "conversation_id": talk,
        "messages": [{"role": "user", "content": "why?"}],
    }
    upstream.answers.append(openai_chat.stream(Turn(text=["because"])))
    with asking(sidecar, body) as events:
        first = [event.data for event in events][-1]
    upstream.answers.append(hanging(Turn(text=["half an ans"])))
    with (
        contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError),
        asking(sidecar, body) as events,
    ):
        assert next(events).data["text"] == "half an ans"
        os.kill(sidecar.pid, KILL)
        assert [event.event for event in events] == []

    sidecar = launch_sidecar(models=False)
    question, reply, again, broken = messages(sidecar, talk)
    assert (question["content"], reply["content"], again["content"]) == ("why?", "because", "why?")
    assert reply["status"] == "completed" and reply["message_id"] == first["message_id"]
    assert broken["status"] == "failed"
    assert broken["error_code"] == "PROVIDER_STREAM_INTERRUPTED" and broken["error"]
    state = sidecar.get(f"{CONVERSATIONS}/{talk}").check().json()
    assert (state["active_leaf"], state["active_response_id"]) == (broken["message_id"], None)
    upstream.answers.append(openai_chat.stream(Turn(text=["a whole answer"])))
    with asking(
        sidecar, {**body, "messages": [], "retry_message_id": broken["message_id"]}
    ) as events:
        assert [event.event for event in events] == ["TextDelta", "Done"]
    assert [message["content"] for message in messages(sidecar, talk)] == [
        *("why?", "because", "why?", "a whole answer")
    ]


@pytest.mark.proves("host.stop.chat-streams-close")
def test_told_to_stop_while_answering(
    launch_sidecar: LaunchSidecar, upstream: FakeUpstream
) -> None:
    sidecar = launch_sidecar(models=False)
    body = {
        "provider_id": provider(sidecar, upstream),
        "model": "m",
        "messages": [{"role": "user", "content": "why?"}],
    }
    upstream.answers.append(hanging(Turn(text=["half an ans"])))
    with asking(sidecar, body) as events:
        assert next(events).event == "TextDelta"
        sidecar.host_post("/api/system/shutdown").check()
        assert [(event.event, event.data.get("status")) for event in events] == [
            ("Error", None),
            ("Done", "failed"),
        ]
    assert upstream.received[0].hung_up.wait(10)


async def test_a_long_answer_is_kept_on_the_way(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chat.note("Quantum", "A quantum is 20 ms.")
    talk = await chat.conversation()
    chat.says(
        searching("quantum", text=["Looking."]), hanging(Turn(text=["one ", "two ", "three"]))
    )
    monkeypatch.setattr("sidecar.chat.turn.CHECKPOINT_SECONDS", 0.0)

    async def drafts() -> list[str]:
        return await chat.app.services.database.read(
            lambda conn: [row[0] for row in conn.execute("SELECT draft FROM chat_generations")]
        )

    async with chat.reading(use_rag=True, conversation_id=talk) as stream:
        while not stream.told.text.endswith("three"):
            await stream.next()

        async def kept() -> bool:
            (draft,) = await drafts()
            return "one two" in draft and "rag.search" in draft and "Quantum.md" in draft

        await eventually(kept)
        assert await chat.contents(talk) == ["What is new?"]
    await eventually(lambda: not chat.app.services.chat._running)
    assert await drafts() == []
    assert (await chat.contents(talk))[-1] == "Looking.\n\none two three"
