"""What is wrong with a request is told by its status, what a provider does wrong by its stream."""

from typing import Any

import pytest

from tests.app_client import RunningApp
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream


async def _new(app: RunningApp, configuration: dict[str, Any], **fields: Any) -> str:
    answer = await app.http.post("/api/providers", json={**configuration, **fields})
    assert answer.status_code == 201, answer.text
    provider_id: str = answer.json()["provider_id"]
    return provider_id


@pytest.mark.proves("providers.errors.stream-vs-http")
async def test_a_wrong_request_has_a_status_and_a_failing_provider_a_stream(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    provider_id = await _new(app, configuration)
    off = await _new(app, configuration, enabled=False)
    blind = await _new(app, configuration, capabilities=["embedding"])
    question = [{"role": "user", "content": "hello"}]
    for body, status, code in (
        ({"provider_id": provider_id, "messages": []}, 422, "VALIDATION_ERROR"),
        ({"messages": question}, 422, "VALIDATION_ERROR"),
        ({"provider_id": "provider_none", "messages": question}, 404, "RESOURCE_NOT_FOUND"),
        ({"provider_id": off, "messages": question}, 409, "PROVIDER_DISABLED"),
        ({"provider_id": blind, "messages": question}, 400, "MODEL_CAPABILITY_MISMATCH"),
    ):
        answer = await app.http.post("/api/chat", json=body)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"]["code"] == code
    assert upstream.received == []
    for failure, code in (
        (openai_chat.refusal(401, "invalid_api_key", "wrong key"), "PROVIDER_AUTH_FAILED"),
        (Answer(status=500), "PROVIDER_UNAVAILABLE"),
        (Answer(pieces=[b"<html>"], content_type="text/html"), "PROVIDER_PROTOCOL_ERROR"),
    ):
        upstream.respond = lambda _, failure=failure: failure
        answer = await app.http.post(
            "/api/chat", json={"provider_id": provider_id, "messages": question}
        )
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        names = [line[7:] for line in answer.text.splitlines() if line.startswith("event: ")]
        assert names[-2:] == ["Error", "Done"]
        assert f'"code":"{code}"' in answer.text.replace(": ", ":")
