"""Configurations that are tried, and requests that are shown, before anything is stored."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.providers.checks import PROBE_SECONDS, PROBE_TEXT
from sidecar.providers.schemas.wire import ProviderCreateRequest
from tests.app_client import RunningApp
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Turn
from tests.providers.bench import PROTOCOLS, Bench, bench_in, fake, joined
from tests.providers.test_crud import PROVIDERS, code_of, create

TEST, PROBE = f"{PROVIDERS}/test", f"{PROVIDERS}/request-probe"
PREVIEW, VALIDATE = f"{PROVIDERS}/request-preview", f"{PROVIDERS}/request-rules/validate"
OK = Turn(text=["OK"], usage=(9, 1))


def rule(path: str = "/temperature", value: Any = 0.1, **more: Any) -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value, **more}


async def ledger(app: RunningApp) -> list[dict[str, Any]]:
    return await app.services.database.read(
        lambda conn: [
            dict(row) for row in conn.execute("SELECT * FROM usage_attempts ORDER BY attempt_no")
        ]
    )


# -- test --------------------------------------------------------------------------------------------


@pytest.mark.proves("providers.test.success", "providers.test.no-save")
async def test_a_configuration_that_works(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    upstream.answers.append(openai_chat.whole(OK))
    answer = await app.http.post(TEST, json=configuration)
    told = answer.json()
    assert answer.status_code == 200
    assert told.pop("duration_ms") >= 0
    assert told == {"success": True, "model": "m", "error_code": None, "message": None}
    assert upstream.received[0].path == "/chat/completions"
    upstream.answers.append(openai_chat.models("first", "second"))
    nameless = {**configuration, "default_model": None}
    assert (await app.http.post(TEST, json=nameless)).json()["model"] == "first"
    assert (await app.http.get(PROVIDERS)).json()["items"] == []


@pytest.mark.proves("providers.test.failure", "providers.test.no-save")
async def test_a_configuration_that_fails(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    for refusal, code in (
        (openai_chat.refusal(401, "invalid_api_key", "leaked"), "PROVIDER_AUTH_FAILED"),
        (openai_chat.refusal(404, "model_not_found", "leaked"), "MODEL_NOT_FOUND"),
        (Answer(pieces=[b"<html>"], content_type="text/html"), "PROVIDER_PROTOCOL_ERROR"),
    ):
        upstream.answers.append(refusal)
        answer = await app.http.post(TEST, json=configuration, headers={"Accept-Language": "zh-CN"})
        told = answer.json()
        assert answer.status_code == 200
        assert (told["success"], told["error_code"]) == (False, code)
        assert told["message"] and "leaked" not in answer.text
        assert not told["message"].isascii(), "in the language of the request"
    assert (await app.http.get(PROVIDERS)).json()["items"] == []


# -- rules -------------------------------------------------------------------------------------------


@pytest.mark.proves("providers.request-rules.validate", "providers.request-rules.no-save")
async def test_rules_come_back_in_full(app: RunningApp) -> None:
    made = await create(app, {"name": "a", "provider_type": "ollama", "base_url": "http://a"})
    body = {
        "version": 1,
        "request_overrides": [
            rule("/thinking/type", "disabled", capabilities=["embedding", "chat", "chat"]),
            {"op": "remove", "path": "/stream_options"},
            rule("/a~1b/~0/0", None),
        ],
    }
    answer = await app.http.post(VALIDATE, json=body)
    every = ["chat", "embedding", "transcription", "speaker_matching"]
    assert answer.status_code == 200
    assert answer.json() == {
        "version": 1,
        "request_overrides": [
            {
                "op": "set",
                "path": "/thinking/type",
                "value": "disabled",
                "capabilities": ["chat", "embedding"],
            },
            {"op": "remove", "path": "/stream_options", "value": None, "capabilities": every},
            {"op": "set", "path": "/a~1b/~0/0", "value": None, "capabilities": every},
        ],
    }
    again = await app.http.post(VALIDATE, json=answer.json())
    assert again.json() == answer.json()
    assert (await app.http.get(PROVIDERS)).json()["items"] == [made]


@pytest.mark.proves("providers.request-rules.limit", "providers.request-rules.version")
async def test_a_hundred_rules_of_version_one(app: RunningApp) -> None:
    async def status(count: int, version: Any = 1) -> int:
        rules = [rule(f"/a{number}") for number in range(count)]
        body = {"version": version, "request_overrides": rules}
        return (await app.http.post(VALIDATE, json=body)).status_code

    assert await status(100) == 200
    assert await status(101) == 422
    for version in (0, 2, "1", None):
        assert await status(1, version) == 422
    assert (await app.http.post(VALIDATE, json={"request_overrides": []})).status_code == 422


WRONG_RULES = [
    {"op": "replace", "path": "/a", "value": 1},
    {"op": "set", "path": "/a"},
    {"op": "remove", "path": "/a", "value": 1},
    {"op": "set", "path": "a", "value": 1},
    {"op": "set", "path": "", "value": 1},
    {"op": "set", "path": "/", "value": 1},
    {"op": "set", "path": "/a~2", "value": 1},
    {"op": "set", "path": "/" + "a" * 600, "value": 1},
    {"op": "set", "path": "/a", "value": 1, "capabilities": []},
    {"op": "set", "path": "/a", "value": 1, "capabilities": ["vision"]},
    {"op": "set", "path": "/a", "value": 1, "extra": True},
    {"path": "/a", "value": 1},
    "no rule",
]
PROTECTED = [
    *("/messages", "/messages/0/content", "/input", "/input/0", "/file", "/reference_file"),
    *("/stream", "/headers/Authorization", "/url", "/base_url", "/credential_id", "/api_key"),
    *("/Messages", "/API-KEY"),
]


@pytest.mark.proves(
    "providers.request-rules.rule-shape",
    "providers.request-rules.one-validator",
    "providers.request-rules.protected",
)
async def test_a_wrong_rule_is_wrong_everywhere_and_named(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, configuration)
    for wrong in [*WRONG_RULES, *(rule(path) for path in PROTECTED)]:
        rules = [rule("/fine"), rule("/fine/too"), wrong]
        body = {**configuration, "request_overrides": rules}
        for method, path, sent in (
            ("POST", VALIDATE, {"version": 1, "request_overrides": rules}),
            ("POST", PROVIDERS, body),
            ("PATCH", f"{PROVIDERS}/{made['provider_id']}", {"request_overrides": rules}),
            ("POST", TEST, body),
            ("POST", PROBE, {"provider": body, "stream": False}),
            ("POST", PREVIEW, {"provider": body}),
        ):
            answer = await app.http.request(method, path, json=sent)
            assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR"), (path, wrong)
            places = [error["loc"] for error in answer.json()["error"]["details"]["errors"]]
            assert all(place[place.index("request_overrides") + 1] == 2 for place in places), places
    assert (await app.http.get(PROVIDERS)).json()["items"] == [made]
    assert upstream.received == []


@pytest.mark.proves("providers.request-rules.applied")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_saved_rules_change_their_place_and_nothing_else(bench: Bench, protocol: str) -> None:
    plain = await bench.target(protocol)
    ruled = await bench.target(
        protocol,
        request_overrides=[
            rule("/extra/deep/flag", True),
            rule("/temperature", 0.9),
            rule("/list", [1]),
            rule("/list/-", {"two": 2}),
            rule("/list/0", "one"),
            {"op": "remove", "path": "/max_tokens"},
            {"op": "remove", "path": "/not/there"},
            rule("/only/embedding", 1, capabilities=["embedding"]),
            rule("/model/below", 1),
        ],
    )
    for target in (plain, ruled):
        bench.upstream.answers += [fake(protocol).stream(OK), fake(protocol).whole(OK)]
        assert joined(await bench.stream(target)) == "OK"
        await bench.complete(target)
    bodies = [request.json for request in bench.upstream.received]
    for before, after in zip(bodies[:2], bodies[2:], strict=True):
        expected = {
            **before,
            "extra": {"deep": {"flag": True}},
            "temperature": 0.9,
            "list": ["one", {"two": 2}],
        }
        expected.pop("max_tokens", None)
        assert after == expected


# -- preview -----------------------------------------------------------------------------------------


@pytest.mark.proves(
    "providers.request-preview.capability",
    "providers.request-preview.hidden-body",
    "providers.request-preview.no-call",
)
async def test_previews(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    secret = "sk-canary-of-previews-123"
    await app.services.credentials.set("vendor", secret)
    body = {
        **configuration,
        "credential_id": "vendor",
        "request_overrides": [rule("/dimensions", 256), rule("/model/x", 1), rule("/user", secret)],
    }
    hidden = "[hidden]"
    expected: dict[str, dict[str, Any]] = {
        "chat": {
            "model": "m",
            "messages": [
                {"role": "system", "content": hidden},
                {"role": "user", "content": hidden},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        "embedding": {"model": "m", "input": [hidden]},
        "transcription": {"model": "m", "file": hidden},
        "speaker_matching": {"model": "m", "file": hidden, "reference_file": hidden},
    }
    for capability, wanted in expected.items():
        sent = {"provider": body, "capability": capability}
        answer = await app.http.post(PREVIEW, json=sent)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {
            "capability": capability,
            "body": {**wanted, "dimensions": 256, "user": "[redacted]"},
            "unplaced_rules": [1],
        }
        assert secret not in answer.text and "vendor" not in answer.text
        assert "authorization" not in answer.text.lower()
    default = await app.http.post(PREVIEW, json={"provider": body})
    assert default.json()["capability"] == "chat"
    plain = await app.http.post(PREVIEW, json={"provider": body, "stream": False})
    assert plain.json()["body"]["stream"] is False
    for wrong in ("vision", "", None, 1):
        answer = await app.http.post(PREVIEW, json={"provider": body, "capability": wrong})
        assert answer.status_code == 422
    other = {**body, "provider_type": "anthropic"}
    answer = await app.http.post(PREVIEW, json={"provider": other, "capability": "embedding"})
    assert (answer.status_code, code_of(answer)) == (400, "MODEL_CAPABILITY_MISMATCH")
    assert upstream.received == []


# -- probe -------------------------------------------------------------------------------------------


@pytest.mark.proves(
    "providers.request-probe.success",
    "providers.request-probe.fixed-message",
    "providers.request-probe.stream-flag",
    "providers.request-probe.no-save",
    "providers.request-probe.usage",
)
async def test_a_probe(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    for stream in (True, False):
        upstream.answers.append((openai_chat.stream if stream else openai_chat.whole)(OK))
        answer = await app.http.post(PROBE, json={"provider": configuration, "stream": stream})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"success": True, "stream": stream, "model": "m", "message": "OK"}
        sent = upstream.received[-1].json
        assert sent["stream"] is stream
        assert sent["messages"] == [{"role": "user", "content": PROBE_TEXT}]
    extras: list[dict[str, Any]] = [{"message": "mine"}, {"messages": []}, {"text": "mine"}]
    for extra in extras:
        wrong = {"provider": configuration, "stream": True, **extra}
        assert (await app.http.post(PROBE, json=wrong)).status_code == 422
    assert (await app.http.post(PROBE, json={"provider": configuration})).status_code == 422
    nameless = {**configuration, "default_model": None}
    answer = await app.http.post(PROBE, json={"provider": nameless, "stream": True})
    assert answer.status_code == 422
    assert len(upstream.received) == 2
    assert (await app.http.get(PROVIDERS)).json()["items"] == []
    rows = await ledger(app)
    assert [(row["source"], row["status"], row["total_tokens"]) for row in rows] == [
        ("probe", "completed", 10)
    ] * 2


@pytest.mark.proves("providers.request-probe.empty")
async def test_a_probe_without_content(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    for stream in (True, False):
        empty = Turn(thinking=["只想不说"], finish="length")
        upstream.answers.append((openai_chat.stream if stream else openai_chat.whole)(empty))
        answer = await app.http.post(PROBE, json={"provider": configuration, "stream": stream})
        assert (answer.status_code, code_of(answer)) == (422, "PROVIDER_EMPTY_RESPONSE")


@pytest.mark.proves("providers.request-probe.vendor-error")
async def test_a_probe_that_meets_an_error(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    for stream in (True, False):
        for status, code in (
            (401, "PROVIDER_AUTH_FAILED"),
            (402, "PROVIDER_RATE_LIMITED"),
            (500, "PROVIDER_UNAVAILABLE"),
            (404, "PROVIDER_PROTOCOL_ERROR"),
        ):
            upstream.answers.append(openai_chat.refusal(status, "x", "leaked"))
            answer = await app.http.post(PROBE, json={"provider": configuration, "stream": stream})
            assert (answer.status_code, code_of(answer)) == (502, code)
            assert "leaked" not in answer.text
        upstream.answers.append(openai_chat.refusal(404, "model_not_found", "no"))
        answer = await app.http.post(PROBE, json={"provider": configuration, "stream": stream})
        assert (answer.status_code, code_of(answer)) == (502, "MODEL_NOT_FOUND")
        refused = {**configuration, "base_url": "http://127.0.0.1:9"}
        answer = await app.http.post(PROBE, json={"provider": refused, "stream": stream})
        assert (answer.status_code, code_of(answer)) == (502, "PROVIDER_UNAVAILABLE")


@pytest.mark.proves("providers.request-probe.timeout")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_probe_that_takes_too_long(tmp_path: Path, stream: bool) -> None:
    async with bench_in(tmp_path, probe_seconds=0.3) as bench:
        bench.upstream.answers.append(Answer(no_head=True, end="hold"))
        configuration = ProviderCreateRequest(
            name="a",
            provider_type="openai_compatible",
            base_url=bench.upstream.url,
            default_model="m",
        )
        with pytest.raises(ProjectError) as raised:
            await bench.service.checks.probe(configuration, stream=stream)
        assert (raised.value.code, raised.value.status) == ("PROVIDER_TIMEOUT", 504)
        assert await asyncio.to_thread(bench.upstream.received[0].hung_up.wait, 1)
        assert [row["status"] for row in await bench.attempts()] == ["cancelled"]


def test_a_probe_has_45_seconds() -> None:
    assert PROBE_SECONDS == 45


# -- keys --------------------------------------------------------------------------------------------


@pytest.mark.proves("providers.crud.no-plaintext-key", "providers.request-probe.credential-id-only")
async def test_no_key_is_taken_in(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, configuration)
    for name in ("api_key", "apiKey", "secret", "token", "headers", "authorization"):
        keyed = {**configuration, name: "sk-plain"}
        for method, path, sent in (
            ("POST", PROVIDERS, keyed),
            ("PATCH", f"{PROVIDERS}/{made['provider_id']}", {name: "sk-plain"}),
            ("POST", TEST, keyed),
            ("POST", PROBE, {"provider": keyed, "stream": False}),
            ("POST", PROBE, {"provider": configuration, "stream": False, name: "sk-plain"}),
            ("POST", PREVIEW, {"provider": keyed}),
        ):
            answer = await app.http.request(method, path, json=sent)
            assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR"), (path, name)
            assert "sk-plain" not in answer.text
    assert (await app.http.get(PROVIDERS)).json()["items"] == [made]
    assert upstream.received == []


async def test_the_key_is_found_by_its_id(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    await app.services.credentials.set("vendor", "sk-of-the-vendor")
    keyed = {**configuration, "credential_id": "vendor"}
    upstream.answers.append(openai_chat.whole(OK))
    answer = await app.http.post(PROBE, json={"provider": keyed, "stream": False})
    assert answer.status_code == 200
    assert upstream.received[0].headers["authorization"] == "Bearer sk-of-the-vendor"
    missing = {**configuration, "credential_id": "nobody"}
    answer = await app.http.post(PROBE, json={"provider": missing, "stream": False})
    assert (answer.status_code, code_of(answer)) == (502, "PROVIDER_AUTH_FAILED")
    told = (await app.http.post(TEST, json=missing)).json()
    assert (told["success"], told["error_code"]) == (False, "PROVIDER_AUTH_FAILED")
    assert len(upstream.received) == 1
    assert "sk-of-the-vendor" not in json.dumps(await ledger(app))
