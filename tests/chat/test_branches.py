"""Versions of messages, and which branch is the active one."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecar.chat import store
from sidecar.kernel.database import Transaction
from tests.chat.conftest import Chat, eventually, hanging, running_chat
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Turn


async def said(chat: Chat, conversation_id: str, question: str, answer: str, **fields: Any) -> Any:
    """Ask, have this answered, and return `Done`."""
    chat.says(Turn(text=[answer]))
    return (await chat.ask(question, conversation_id=conversation_id, **fields)).done


async def again(chat: Chat, conversation_id: str, message_id: str, answer: str) -> Any:
    """Have a reply made again."""
    chat.says(Turn(text=[answer]))
    fields = {"conversation_id": conversation_id, "retry_message_id": message_id}
    return (await chat.ask(None, **fields)).done


def held(answer: str) -> tuple[Answer, threading.Event]:
    """An answer that waits for an event before it begins."""
    go_on = threading.Event()
    return replace(openai_chat.stream(Turn(text=[answer])), before_head=go_on), go_on


@pytest.mark.proves("chat.versions.edit", "chat.versions.becomes-active")
async def test_an_edit_begins_a_branch_of_its_own(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    second = await said(chat, talk, "two", "2")
    await said(chat, talk, "three", "3")
    edited = await said(chat, talk, "TWO", "22", retry_message_id=second["user_message_id"])
    branch = await chat.messages(talk)
    assert [message["content"] for message in branch] == ["one", "1", "TWO", "22"]
    assert branch[2]["message_id"] == edited["user_message_id"] != second["user_message_id"]
    assert branch[2]["parent_message_id"] == first["message_id"]
    assert branch[2]["versions"] == [second["user_message_id"], edited["user_message_id"]]
    assert branch[3]["parent_message_id"] == edited["user_message_id"]
    await chat.select(talk, second["user_message_id"])
    assert await chat.contents(talk) == ["one", "1", "two", "2", "three", "3"]


async def test_the_first_question_can_be_edited(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    await said(chat, talk, "ONE", "11", retry_message_id=first["user_message_id"])
    question, _ = await chat.messages(talk)
    assert question["content"] == "ONE" and question["parent_message_id"] is None
    assert len(question["versions"]) == 2


@pytest.mark.proves("chat.versions.regenerate", "chat.versions.becomes-active")
async def test_a_reply_is_made_again_under_its_question(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    await said(chat, talk, "two", "2")
    renewed = await again(chat, talk, first["message_id"], "1 again")
    assert renewed["user_message_id"] == first["user_message_id"]
    branch = await chat.messages(talk)
    assert [message["content"] for message in branch] == ["one", "1 again"]
    assert branch[1]["versions"] == [first["message_id"], renewed["message_id"]]
    # What was sent is the question as it is stored, whatever else the request says.
    assert chat.sent[-1]["messages"] == [{"role": "user", "content": "one"}]
    await chat.select(talk, first["message_id"])
    assert await chat.contents(talk) == ["one", "1", "two", "2"]


@pytest.mark.proves("chat.versions.list-field", "chat.messages.list")
async def test_only_the_active_branch_is_listed(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    renewed = [await again(chat, talk, first["message_id"], f"1.{number}") for number in range(3)]
    ids = [done["message_id"] for done in (first, *renewed)]
    await said(chat, talk, "two", "2")
    branch = await chat.messages(talk)
    assert [message["content"] for message in branch] == ["one", "1.2", "two", "2"]
    assert branch[1]["versions"] == ids
    assert [message["versions"] for message in branch[2:]] == [
        [branch[2]["message_id"]],
        [branch[3]["message_id"]],
    ]
    parents = [message["parent_message_id"] for message in branch]
    assert parents == [None, *(message["message_id"] for message in branch[:3])]
    assert [message["role"] for message in branch] == ["user", "assistant"] * 2


@pytest.mark.proves(
    "chat.versions.select", "chat.versions.select-response", "chat.versions.select-restores-path"
)
async def test_select_restores_the_newest_path(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    second = await said(chat, talk, "two", "2")
    third = await again(chat, talk, second["message_id"], "2 again")
    other = await again(chat, talk, first["message_id"], "1 again")
    selected = await chat.select(talk, first["message_id"])
    assert [message["content"] for message in selected] == ["one", "1", "two", "2 again"]
    assert selected == await chat.messages(talk)
    assert selected[3]["versions"] == [second["message_id"], third["message_id"]]
    assert selected[1]["versions"] == [first["message_id"], other["message_id"]]
    # A lower reply's older version can be chosen too, and what goes on there is the newest path.
    await chat.select(talk, second["message_id"])
    assert await chat.contents(talk) == ["one", "1", "two", "2"]
    await said(chat, talk, "three", "3")
    await chat.select(talk, other["message_id"])
    assert await chat.contents(talk) == ["one", "1 again"]
    await chat.select(talk, first["message_id"])
    assert await chat.contents(talk) == ["one", "1", "two", "2", "three", "3"]


@pytest.mark.proves("chat.versions.select-unknown", "chat.versions.select-idempotent")
async def test_select_of_what_is_active_or_unknown_changes_nothing(chat: Chat) -> None:
    talk, other = await chat.conversation(), await chat.conversation()
    first = await said(chat, talk, "one", "1")
    second = await said(chat, talk, "two", "2")
    await again(chat, talk, second["message_id"], "2 again")
    await chat.select(talk, second["message_id"])
    foreign = await said(chat, other, "x", "y")
    before = await chat.messages(talk)
    for message_id in (first["message_id"], second["message_id"], second["user_message_id"]):
        assert await chat.select(talk, message_id) == before
    for message_id in ("message_0", foreign["message_id"]):
        path = f"/api/chat/conversations/{talk}/messages/{message_id}/select"
        answer = await chat.app.http.post(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RESOURCE_NOT_FOUND")
    assert await chat.messages(talk) == before


@pytest.mark.proves("chat.versions.branch-context-only")
async def test_other_versions_are_not_sent(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "first version")
    await said(chat, talk, "side question", "side answer")
    await again(chat, talk, first["message_id"], "second version")
    # What a client holds for the history doesn't matter.
    history = [
        {"role": "user", "content": "side question"},
        {"role": "assistant", "content": "side answer"},
        {"role": "user", "content": "and then?"},
    ]
    chat.says(Turn(text=["end"]))
    await chat.ask("and then?", conversation_id=talk, messages=history)
    assert chat.sent[-1]["messages"] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "second version"},
        {"role": "user", "content": "and then?"},
    ]


async def raw(chat: Chat, sql: str, *parameters: Any) -> list[Any]:
    """Look into the database."""
    return await chat.app.services.database.read(
        lambda conn: [tuple(row) for row in conn.execute(sql, parameters)]
    )


@pytest.mark.proves("chat.versions.parent-fields", "chat.versions.reserved-response")
async def test_the_reserved_reply_is_stored_and_released(chat: Chat) -> None:
    talk = await chat.conversation()
    answer, go_on = held("1")
    chat.says(answer)
    async with chat.reading("one", conversation_id=talk) as stream:
        await chat.arrived(1)
        state = (await chat.app.http.get(f"/api/chat/conversations/{talk}")).json()
        (question,) = await chat.messages(talk)
        assert state["active_leaf"] == question["message_id"]
        columns = "SELECT active_leaf, active_response_id FROM chat_conversations WHERE conversation_id = ?"
        assert await raw(chat, columns, talk) == [
            (state["active_leaf"], state["active_response_id"])
        ]
        go_on.set()
        done = (await stream.rest()).done
    assert done["message_id"] == state["active_response_id"]
    assert await raw(chat, columns, talk) == [(done["message_id"], None)]
    stored = await raw(
        chat,
        "SELECT parent_message_id, activity_json FROM chat_messages WHERE message_id = ?",
        done["message_id"],
    )
    assert stored == [(question["message_id"], "[]")]


@pytest.mark.proves("chat.versions.two-generations", "chat.versions.late-reply")
@pytest.mark.parametrize("later_first", [True, False])
async def test_the_later_of_two_generations_wins(chat: Chat, later_first: bool) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    answers = [held("earlier"), held("later")]
    chat.says(*(answer for answer, _ in answers))
    fields = {"conversation_id": talk, "retry_message_id": first["message_id"]}
    started = []
    for count in (2, 3):
        started.append(asyncio.create_task(chat.ask(None, **fields)))
        await chat.arrived(count)
    for index in (1, 0) if later_first else (0, 1):
        answers[index][1].set()
        await started[index]
    branch = await chat.messages(talk)
    assert [message["content"] for message in branch] == ["one", "later"]
    ids = [first["message_id"], *(task.result().done["message_id"] for task in started)]
    assert branch[1]["versions"] == ids


@pytest.mark.proves("chat.versions.select-while-generating")
async def test_a_selection_stays_while_a_reply_comes(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    second = await again(chat, talk, first["message_id"], "1 again")
    for chosen in (first, second):
        answer, go_on = held("newest")
        chat.says(answer)
        count = len(chat.received)
        fields = {"conversation_id": talk, "retry_message_id": first["message_id"]}
        asking = asyncio.create_task(chat.ask(None, **fields))
        await chat.arrived(count + 1)
        await chat.select(talk, chosen["message_id"])
        go_on.set()
        done = (await asking).done
        branch = await chat.messages(talk)
        assert branch[1]["message_id"] == chosen["message_id"]
        assert branch[1]["versions"][-1] == done["message_id"]


async def test_a_reply_follows_its_question_though_it_was_left_for_a_while(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    answer, go_on = held("11")
    chat.says(answer)
    fields = {"conversation_id": talk, "retry_message_id": first["user_message_id"]}
    asking = asyncio.create_task(chat.ask("ONE", **fields))
    await chat.arrived(2)
    (edited,) = await chat.messages(talk)
    await chat.select(talk, first["user_message_id"])
    await chat.select(talk, edited["message_id"])
    go_on.set()
    await asking
    assert await chat.contents(talk) == ["ONE", "11"]


@pytest.mark.proves("chat.versions.late-reply")
async def test_a_cancelled_reply_does_not_come_back(chat: Chat) -> None:
    talk = await chat.conversation()
    first = await said(chat, talk, "one", "1")
    chat.says(hanging(Turn(text=["late"])))
    fields = {"conversation_id": talk, "retry_message_id": first["message_id"]}
    async with chat.reading(None, **fields) as stream:
        await stream.until("TextDelta")
        await said(chat, talk, "two", "2")
    await eventually(lambda: not chat.app.services.chat._running)
    branch = await chat.messages(talk)
    assert [message["content"] for message in branch] == ["one", "1", "two", "2"]
    assert len(branch[1]["versions"]) == 2


@pytest.mark.proves("chat.versions.restart")
async def test_branches_outlive_a_restart(tmp_path: Path, upstream: FakeUpstream) -> None:
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        talk = await chat.conversation()
        first = await said(chat, talk, "one", "1")
        await again(chat, talk, first["message_id"], "1 again")
        await said(chat, talk, "two", "2")
        before = await chat.messages(talk)
        state = (await chat.app.http.get(f"/api/chat/conversations/{talk}")).json()
        await chat.app.services.database.write(
            lambda tx: store.set_active(tx, talk, state["active_leaf"], "message_of_a_dead_process")
        )
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        assert await chat.messages(talk) == before
        now = (await chat.app.http.get(f"/api/chat/conversations/{talk}")).json()
        assert now["active_leaf"] == state["active_leaf"] and now["active_response_id"] is None
        await chat.select(talk, first["message_id"])
        assert await chat.contents(talk) == ["one", "1"]
        await said(chat, talk, "three", "3")
        assert await chat.contents(talk) == ["one", "1", "three", "3"]


@pytest.mark.proves(
    "chat.versions.linear-migration", "chat.activity.old-messages", "chat.snapshot.old-default"
)
async def test_old_histories_become_one_path(tmp_path: Path, upstream: FakeUpstream) -> None:
    texts = ["one", "1", "two", "2 [cit_blk_1]"]

    def as_it_was(tx: Transaction) -> None:
        store.insert_conversation(tx, "conversation_old", "Old", "2025-01-01T00:00:00.000Z")
        for position, content in enumerate(texts, 1):
            tx.execute(
                "INSERT INTO chat_messages (message_id, conversation_id, position, role, content,"
                " thinking, tool_calls, citations, created_at)"
                " VALUES (?, 'conversation_old', ?, ?, ?, ?, ?, '[]', '2025-01-01T00:00:00.000Z')",
                (
                    f"message_{position}",
                    position,
                    "user" if position % 2 else "assistant",
                    content,
                    None if position % 2 else "thought",
                    "[]"
                    if position % 2
                    else '[{"tool_call_id": "a", "name": "rag.search", "arguments": {}, "status": "error"}]',
                ),
            )

    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        edited = await chat.conversation()
        first = await said(chat, edited, "x", "y")
        await said(chat, edited, "X", "Y", retry_message_id=first["user_message_id"])
        new = await chat.messages(edited)
        await chat.app.services.database.write(as_it_was)
    async with running_chat(tmp_path, upstream, open_vault=False) as chat:
        branch = await chat.messages("conversation_old")
        assert [message["content"] for message in branch] == texts
        assert [message["parent_message_id"] for message in branch] == [
            None,
            "message_1",
            "message_2",
            "message_3",
        ]
        for message in branch:
            assert message["versions"] == [message["message_id"]]
            assert message["activity"] is None and message["context_captured"] is False
        assert branch[1]["thinking"] == "thought"
        assert branch[1]["tool_calls"][0]["status"] == "error"
        assert await chat.messages(edited) == new
        done = await said(chat, "conversation_old", "three", "3")
        assert len(await chat.messages("conversation_old")) == 6 and done["message_id"]
