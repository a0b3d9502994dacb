"""Conversations as things of their own."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.chat.conversations import title_of
from tests.chat.conftest import Chat, hanging, running_chat
from tests.fakes import openai_chat
from tests.fakes.upstream import FakeUpstream, Turn


async def listed(chat: Chat, **query: Any) -> dict[str, Any]:
    answer = await chat.app.http.get("/api/chat/conversations", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.proves("chat.conversations.create")
async def test_create(chat: Chat) -> None:
    answer = await chat.app.http.post("/api/chat/conversations", json={"title": "研究 😀"})
    assert answer.status_code == 201
    made = answer.json()
    assert made == {
        "conversation_id": made["conversation_id"],
        "title": "研究 😀",
        "active_leaf": None,
        "active_response_id": None,
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
    }
    untitled = (await chat.app.http.post("/api/chat/conversations", json={})).json()
    assert untitled["title"] == "New chat"
    path = f"/api/chat/conversations/{untitled['conversation_id']}"
    chinese = await chat.app.http.get(path, headers={"Accept-Language": "zh-CN"})
    assert chinese.json()["title"] == "新对话"
    made = await chat.app.http.post(
        "/api/chat/conversations", json={}, headers={"Accept-Language": "zh-CN"}
    )
    assert made.json()["title"] == "新对话"
    for body in ({"title": ""}, {"title": "x" * 201}, {"title": " "}, {"title": 1}, {"name": "x"}):
        answer = await chat.app.http.post("/api/chat/conversations", json=body)
        assert answer.status_code == 422, body


@pytest.mark.proves("chat.conversations.list")
async def test_list_is_in_the_order_of_use(chat: Chat) -> None:
    first, second, third = [await chat.conversation(title=str(number)) for number in range(3)]
    chat.says(Turn(text=["yes"]))
    await chat.ask(conversation_id=first)
    await chat.app.http.patch(f"/api/chat/conversations/{second}", json={"title": "renamed"})
    found = await listed(chat)
    assert [item["conversation_id"] for item in found["items"]] == [first, third, second]
    assert found["page"] == {"total": 3, "limit": 50, "offset": 0}
    page = await listed(chat, limit=1, offset=1)
    assert [item["conversation_id"] for item in page["items"]] == [third]
    assert page["page"] == {"total": 3, "limit": 1, "offset": 1}
    assert (await listed(chat, offset=3))["items"] == []


@pytest.mark.proves("chat.conversations.get")
async def test_get_and_what_is_not_there(chat: Chat) -> None:
    conversation_id = await chat.conversation(title="Titled")
    path = f"/api/chat/conversations/{conversation_id}"
    assert (await chat.app.http.get(path)).json()["title"] == "Titled"
    nowhere = "/api/chat/conversations/conversation_0"
    for answer in (
        await chat.app.http.get(nowhere),
        await chat.app.http.patch(nowhere, json={"title": "x"}),
        await chat.app.http.delete(nowhere),
        await chat.app.http.get(f"{nowhere}/messages"),
        await chat.app.http.post(f"{nowhere}/messages/message_0/select"),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "RESOURCE_NOT_FOUND"


@pytest.mark.proves("chat.conversations.patch")
async def test_patch(chat: Chat) -> None:
    path = f"/api/chat/conversations/{await chat.conversation()}"
    changed = await chat.app.http.patch(path, json={"title": "x" * 200})
    assert (changed.status_code, changed.json()["title"]) == (200, "x" * 200)
    assert (await chat.app.http.get(path)).json() == changed.json()
    for body in ({}, {"title": ""}, {"title": "x" * 201}, {"title": "a", "active_leaf": "b"}):
        assert (await chat.app.http.patch(path, json=body)).status_code == 422, body
    assert (await chat.app.http.get(path)).json() == changed.json()


@pytest.mark.proves("chat.conversations.delete")
async def test_delete(chat: Chat) -> None:
    note = await chat.note("Kept", "text")
    conversation_id, other = await chat.conversation(), await chat.conversation()
    context = {"file_path": "a.md", "content": "what the editor shows"}
    chat.says(Turn(text=["one"]), Turn(text=["two"]), Turn(text=["three"]))
    first = await chat.ask(conversation_id=conversation_id, workspace_context=context)
    await chat.ask(None, conversation_id=conversation_id, retry_message_id=first.done["message_id"])
    await chat.ask(conversation_id=other, workspace_context=context)
    assert (
        await chat.app.http.delete(f"/api/chat/conversations/{conversation_id}")
    ).status_code == 204
    answer = await chat.app.http.get(f"/api/chat/conversations/{conversation_id}/messages")
    assert answer.status_code == 404

    def left(conn: Any) -> tuple[int, int]:
        messages = conn.execute(
            "SELECT count(*) FROM chat_messages WHERE conversation_id = ?", (conversation_id,)
        ).fetchone()[0]
        return messages, conn.execute("SELECT count(*) FROM chat_snapshots").fetchone()[0]

    assert await chat.app.services.database.read(left) == (0, 1)
    assert (await chat.messages(other))[0]["workspace_context"] == context
    await chat.app.http.delete(f"/api/chat/conversations/{other}")
    assert await chat.app.services.database.read(left) == (0, 0)
    assert (await chat.app.http.get(f"/api/notes/{note['note_id']}")).status_code == 200


@pytest.mark.proves("chat.conversations.delete", "providers.stream.done-cancelled")
async def test_delete_ends_a_reply_that_is_being_generated(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    chat.says(hanging(Turn(text=["so far"])))
    async with chat.reading(conversation_id=conversation_id) as stream:
        await stream.until("TextDelta")
        answer = await chat.app.http.delete(f"/api/chat/conversations/{conversation_id}")
        assert answer.status_code == 204
        told = await stream.rest()
    assert told.names == ["TextDelta", "Done"]
    assert told.done["status"] == "cancelled" and told.done["message_id"] is None
    assert chat.received[0].hung_up.wait(10)
    assert (await listed(chat))["items"] == []


@pytest.mark.proves("chat.conversations.shared")
async def test_the_panel_and_the_page_share_one_record(chat: Chat) -> None:
    plain, panel = await chat.conversation(), await chat.conversation()
    context = {"file_path": "Notes/Today.md", "content": "# Today\n"}
    chat.says(Turn(text=["one"]), Turn(text=["two"]))
    await chat.ask("plain", conversation_id=plain)
    await chat.ask("panel", conversation_id=panel, workspace_context=context)
    items = (await listed(chat))["items"]
    assert [item["conversation_id"] for item in items] == [panel, plain]
    assert items[0].keys() == items[1].keys()
    (from_panel, _), (from_page, _) = await chat.messages(panel), await chat.messages(plain)
    assert from_panel.keys() == from_page.keys()
    assert from_panel["workspace_context"] == context and from_page["workspace_context"] is None


async def test_the_first_question_gives_the_title(chat: Chat) -> None:
    conversation_id, titled = await chat.conversation(), await chat.conversation(title="Mine")
    chat.upstream.respond = lambda _: openai_chat.stream(Turn(text=["yes"]))
    for question in ("# What is  a\nquantum?", "And then?"):
        await chat.ask(question, conversation_id=conversation_id)
        await chat.ask(question, conversation_id=titled)
    titles = {item["conversation_id"]: item["title"] for item in (await listed(chat))["items"]}
    assert titles == {conversation_id: "What is a", titled: "Mine"}


def test_titles() -> None:
    assert title_of("  \n\n> - Hello,   world\nmore") == "Hello, world"
    assert title_of("") == title_of(" \n #\n") == ""
    long = title_of("word " * 40)
    assert long == "word " * 11 + "word…" and len(long) <= 61
    assert title_of("长" * 100) == "长" * 60 + "…"


async def test_conversations_outlive_a_restart(tmp_path: Path, upstream: FakeUpstream) -> None:
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        conversation_id = await chat.conversation(title="Kept")
        before = await listed(chat)
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        assert await listed(chat) == before
        assert await chat.messages(conversation_id) == []
