"""What a request may be, and what becomes of one that can't be answered."""

from typing import Any

import pytest

from sidecar.chat.schemas import ChatRequest, RequestMessage
from tests.chat.conftest import Chat, events_of
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, Turn


@pytest.mark.proves("chat.post.json")
async def test_a_json_body_is_answered_with_model_events(chat: Chat) -> None:
    chat.says(Turn(text=["Hel", "lo"], usage=(3, 2)))
    for media_type in ("application/json", "application/json; charset=utf-8"):
        chat.upstream.respond = lambda _: openai_chat.stream(Turn(text=["Hel", "lo"], usage=(3, 2)))
        answer = await chat.app.http.post(
            "/api/chat", json=chat.body(), headers={"Content-Type": media_type}
        )
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        names = [event.event for event in events_of(answer.text)]
        assert names == ["TextDelta", "TextDelta", "Usage", "Done"]
    form = await chat.app.http.post("/api/chat", files={"message": (None, "hello")})
    # The assistant service isn't there yet.
    assert (form.status_code, form.json()["error"]["code"]) == (501, "CAPABILITY_NOT_AVAILABLE")


@pytest.mark.proves("chat.post.other-media-type")
async def test_other_media_types_are_refused(chat: Chat) -> None:
    for headers, content in (
        ({"Content-Type": "text/plain"}, b"{}"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"a=1"),
        ({"Content-Type": "application/xml"}, b"<a/>"),
        ({}, b"{}"),
    ):
        answer = await chat.app.http.post("/api/chat", content=content, headers=headers)
        assert answer.status_code == 415, headers
        assert answer.json()["error"]["code"] == "UNSUPPORTED_MEDIA_TYPE"
    assert chat.received == []


@pytest.mark.proves("chat.post.request-fields")
async def test_fields_and_their_defaults(chat: Chat) -> None:
    schema = (await chat.app.http.get("/openapi.json")).json()["components"]["schemas"]
    fields = schema["ChatRequest"]["properties"]
    assert set(fields) == {
        *("provider_id", "model", "messages", "conversation_id", "use_rag", "filters"),
        *("workspace_context", "allow_agent", "attachments", "image_fallback_tools"),
        "retry_message_id",
    }
    assert set(schema["ChatFilters"]["properties"]) == {"folder", "tags", "note_ids"}
    assert set(schema["ChatRequest"]["required"]) == {"provider_id", "messages"}
    least = ChatRequest(provider_id="p", messages=[RequestMessage(role="user", content="x")])
    assert least.model_dump(exclude={"provider_id", "messages"}) == {
        "model": None,
        "conversation_id": None,
        "use_rag": False,
        "filters": None,
        "workspace_context": None,
        "allow_agent": False,
        "attachments": [],
        "image_fallback_tools": [],
        "retry_message_id": None,
    }
    chat.says(Turn(text=["yes"]))
    told = await chat.ask(
        conversation_id=None,
        use_rag=False,
        filters=None,
        workspace_context=None,
        allow_agent=False,
        attachments=[],
        image_fallback_tools=[],
        retry_message_id=None,
    )
    assert told.done["status"] == "completed"
    assert chat.sent[0]["messages"] == [{"role": "user", "content": "What is new?"}]
    assert chat.sent[0]["model"] == "m" and not openai_chat.sent_tools(chat.sent[0])


BAD: list[dict[str, Any]] = [
    {"messages": []},
    {"messages": [{"role": "assistant", "content": "hello"}]},
    {"messages": [{"role": "tool", "content": "hello"}]},
    {"messages": "hello"},
    {"messages": [{"role": "user"}]},
    {"provider_id": None},
    {"use_rag": "perhaps"},
    {"filters": {"tags": "a"}},
    {"filters": {"folder": "../outside"}},
    {"filters": {"folder": "/etc"}},
    {"workspace_context": {"file_path": "a.md"}},
    {"attachments": [1]},
    {"retry_message_id": "message_1", "conversation_id": None},
]


@pytest.mark.proves("chat.post.invalid")
@pytest.mark.parametrize("wrong", BAD, ids=str)
async def test_an_invalid_request_leaves_nothing_behind(chat: Chat, wrong: dict[str, Any]) -> None:
    conversation_id = await chat.conversation()
    answer = await chat.app.http.post(
        "/api/chat", json=chat.body(conversation_id=conversation_id) | wrong
    )
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == "VALIDATION_ERROR" and error["details"]["errors"]
    assert chat.received == []
    assert await chat.messages(conversation_id) == []


async def test_a_question_without_words_is_refused(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    answer = await chat.post("  \n", conversation_id=conversation_id)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")
    assert await chat.messages(conversation_id) == [] and chat.received == []


@pytest.mark.proves("chat.post.unknown-ids", "chat.versions.retry-foreign")
async def test_unknown_ids(chat: Chat) -> None:
    conversation_id, other = await chat.conversation(), await chat.conversation()
    chat.says(Turn(text=["yes"]))
    foreign = (await chat.ask(conversation_id=other)).done["message_id"]
    for fields in (
        {"provider_id": "provider_0"},
        {"conversation_id": "conversation_0"},
        {"conversation_id": conversation_id, "retry_message_id": "message_0"},
        {"conversation_id": conversation_id, "retry_message_id": foreign},
    ):
        answer = await chat.app.http.post("/api/chat", json=chat.body() | fields)
        assert answer.status_code == 404, fields
        assert answer.json()["error"]["code"] == "RESOURCE_NOT_FOUND"
    assert await chat.messages(conversation_id) == []
    assert len(await chat.messages(other)) == 2
    assert len(chat.received) == 1


async def test_a_disabled_provider_is_told_before_the_stream(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    provider_id = await chat.provider("chat", enabled=False)
    answer = await chat.post(conversation_id=conversation_id, provider_id=provider_id)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "PROVIDER_DISABLED")
    embedding = await chat.provider("embedding")
    answer = await chat.post(conversation_id=conversation_id, provider_id=embedding)
    assert answer.json()["error"]["code"] == "MODEL_CAPABILITY_MISMATCH"
    assert await chat.messages(conversation_id) == [] and chat.received == []


@pytest.mark.proves("chat.post.provider-failure-stream")
async def test_a_failure_of_the_provider_comes_in_the_stream(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    chat.says(openai_chat.refusal(401, "invalid_api_key", "wrong key"))
    told = await chat.ask(conversation_id=conversation_id)
    assert told.names == ["Error", "Done"]
    assert told.error["code"] == "PROVIDER_AUTH_FAILED" and told.error["message"]
    assert told.done["status"] == "failed"
    broken = openai_chat.stream(Turn(text=["half an ", "answer"]))
    body = b"".join(broken.pieces).partition(b'"finish_reason": "stop"')[0].rpartition(b"data:")[0]
    chat.says(Answer(pieces=[body], content_type="text/event-stream", end="eof"))
    told = await chat.ask(conversation_id=conversation_id)
    assert told.names == ["TextDelta", "TextDelta", "Error", "Done"]
    assert told.error["code"] == "PROVIDER_STREAM_TRUNCATED"
    (_, _, question, reply) = await chat.messages(conversation_id)
    assert (reply["content"], reply["status"]) == ("half an answer", "failed")
    assert reply["error_code"] == "PROVIDER_STREAM_TRUNCATED" and reply["error"]
    path = f"/api/chat/conversations/{conversation_id}/messages"
    chinese = await chat.app.http.get(path, headers={"Accept-Language": "zh-CN"})
    assert "中断" in chinese.json()["items"][-1]["error"]
    assert (question["message_id"], reply["message_id"]) == (
        told.done["user_message_id"],
        told.done["message_id"],
    )


@pytest.mark.proves("chat.post.done-ids")
async def test_done_names_what_was_stored(chat: Chat) -> None:
    conversation_id = await chat.conversation()
    chat.says(Turn(text=["one"]), Turn(text=["two"]))
    for _ in range(2):
        done = (await chat.ask(conversation_id=conversation_id)).done
        *_, question, reply = await chat.messages(conversation_id)
        assert done["status"] == "completed"
        assert done["message_id"] == reply["message_id"] and reply["role"] == "assistant"
        assert done["user_message_id"] == question["message_id"] and question["role"] == "user"
        assert done["conversation_id"] == conversation_id


@pytest.mark.proves("chat.post.stateless")
async def test_without_a_conversation_nothing_is_stored(chat: Chat) -> None:
    chat.says(Turn(text=["hello"]))
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    answer = await chat.app.http.post("/api/chat", json=chat.body() | {"messages": messages})
    events = events_of(answer.text)
    assert events[-1].event == "Done" and events[-1].data["status"] == "completed"
    assert events[-1].data["message_id"] is events[-1].data["user_message_id"] is None
    assert chat.sent[0]["messages"] == messages
    listed = (await chat.app.http.get("/api/chat/conversations")).json()
    assert listed["page"]["total"] == 0
    refused = await chat.post(retry_message_id="message_1")
    assert refused.status_code == 422


async def test_streams_are_not_resumed(chat: Chat) -> None:
    chat.upstream.respond = lambda _: openai_chat.stream(Turn(text=["a", "b"]))
    answer = await chat.app.http.post(
        "/api/chat?after_sequence=2", json=chat.body(), headers={"Last-Event-ID": "2"}
    )
    assert [event.sequence for event in events_of(answer.text)] == [1, 2, 3]
    assert "\nid:" not in answer.text and not answer.text.startswith("id:")
