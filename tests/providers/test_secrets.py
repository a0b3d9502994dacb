"""A provider's key goes to the provider and nowhere else."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.catalogue import ERRORS
from sidecar.kernel.errors import ProjectError
from tests.app_client import RunningApp, running_app
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Turn, sse
from tests.log_lines import log_lines
from tests.providers.bench import HELLO, failure
from tests.providers.test_crud import PROVIDERS, code_of, create

CANARY = "sk-canary-Zx81mQ-5c0f2b7e9d"


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """Every line that is logged meanwhile, as it would be written."""
    with log_lines() as lines:
        yield lines


def answers() -> list[Answer]:
    """Answers of a provider that repeats the key wherever it can."""
    echo = Turn(text=["ok ", CANARY])
    words = f"Incorrect API key provided: {CANARY}"
    return [
        openai_chat.stream(echo),
        openai_chat.refusal(401, "invalid_api_key", words),
        openai_chat.refusal(500, CANARY, words),
        openai_chat.refusal(400, CANARY, words, X_Key=CANARY),
        Answer(302, headers={"Location": f"http://127.0.0.1:9/?key={CANARY}"}),
        Answer(pieces=[f"<html>{CANARY}</html>".encode()], content_type="text/html"),
        Answer(pieces=[f'{{"broken {CANARY}'.encode()]),
        Answer(pieces=[sse({"error": {"message": words}})], content_type="text/event-stream"),
        Answer(pieces=[sse("{" + CANARY)], content_type="text/event-stream"),
    ]


@pytest.mark.proves(
    "providers.crud.secret-separate",
    "providers.crud.read-no-secret",
    "providers.errors.safe-details",
    "providers.adapter.no-vendor-shapes",
)
async def test_a_canary_comes_out_nowhere(
    tmp_path: Path, upstream: FakeUpstream, configuration: dict[str, Any], logged: list[str]
) -> None:
    shown: list[str] = []
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        await app.http.put("/api/credentials/vendor", json={"secret": CANARY})
        keyed = {**configuration, "credential_id": "vendor"}
        made = await create(app, keyed)
        assert (made["credential_id"], made["credential_configured"]) == ("vendor", True)
        service = app.services.providers
        target = await service.target(made["provider_id"], None)
        for index, answer in enumerate(answers()):
            upstream.answers += [answer, answer]
            events = [event async for event in service.stream(target, HELLO)]
            if index:
                failure(events)
                shown.append(json.dumps([event.data for event in events]))
                with pytest.raises(ProjectError) as raised:
                    await service.complete(target, HELLO)
                shown.append(json.dumps(raised.value.body()))
                shown.append(str(raised.value) + repr(raised.value.__dict__["details"]))
            upstream.answers.clear()
        for path, body in (
            (f"{PROVIDERS}/test", keyed),
            (f"{PROVIDERS}/request-probe", {"provider": keyed, "stream": True}),
            (f"{PROVIDERS}/request-preview", {"provider": keyed}),
        ):
            upstream.answers += answers()[:2]
            shown.append((await app.http.post(path, json=body)).text)
            upstream.answers.clear()
        reads = (PROVIDERS, f"{PROVIDERS}/{made['provider_id']}", "/api/usage/export")
        shown += [(await app.http.get(path)).text for path in reads]
        upstream.answers.append(openai_chat.refusal(401, "x", CANARY))
        shown.append((await app.http.get(f"{PROVIDERS}/{made['provider_id']}/models")).text)
        sent = [r.headers.get("authorization") for r in upstream.received]
        assert len(sent) >= 20 and set(sent) == {f"Bearer {CANARY}"}
        assert all(
            CANARY not in r.path and CANARY.encode() not in r.body for r in upstream.received
        )
        files = [file for file in app.data_dir.rglob("*") if file.is_file()]
        assert any(file.name.startswith("app.db") for file in files)
        for file in files:
            assert CANARY.encode() not in file.read_bytes(), file
        with closing(sqlite3.connect(app.data_dir / "app.db")) as database:
            assert CANARY not in "\n".join(database.iterdump())
    assert CANARY not in "\n".join(shown)
    assert logged and CANARY not in "\n".join(logged)


async def test_whether_a_key_is_there_follows_the_store(app: RunningApp) -> None:
    body = {"name": "a", "provider_type": "ollama", "base_url": "http://a", "credential_id": "k"}
    made = await create(app, body)
    path = f"{PROVIDERS}/{made['provider_id']}"
    assert made["credential_configured"] is False
    await app.services.credentials.set("k", "secret-value")
    assert (await app.http.get(path)).json()["credential_configured"] is True
    assert (await app.http.get(PROVIDERS)).json()["items"][0]["credential_configured"] is True
    await app.services.credentials.delete("k")
    assert (await app.http.get(path)).json()["credential_configured"] is False


async def test_a_new_key_is_used_from_the_next_call_on(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, {**configuration, "credential_id": "k"})
    service = app.services.providers
    target = await service.target(made["provider_id"], None)
    for secret in ("first-secret", "second-secret"):
        await app.services.credentials.set("k", secret)
        upstream.answers.append(openai_chat.whole(Turn(text=["ok"])))
        await service.complete(target, HELLO)
    assert [r.headers["authorization"] for r in upstream.received] == [
        "Bearer first-secret",
        "Bearer second-secret",
    ]
    await app.services.credentials.delete("k")
    with pytest.raises(ProjectError) as raised:
        await service.complete(target, HELLO)
    assert raised.value.code == "PROVIDER_AUTH_FAILED"
    assert (
        failure([event async for event in service.stream(target, HELLO)]) == "PROVIDER_AUTH_FAILED"
    )
    assert len(upstream.received) == 2


async def test_a_key_that_no_header_can_carry(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, {**configuration, "credential_id": "k"})
    await app.services.credentials.set("k", "钥匙钥匙钥匙")
    target = await app.services.providers.target(made["provider_id"], None)
    with pytest.raises(ProjectError) as raised:
        await app.services.providers.complete(target, HELLO)
    assert raised.value.code == "PROVIDER_AUTH_FAILED"
    assert upstream.received == []


RESERVED = ("plugin.x", "mcp.server", "Plugin.x", "PLUGIN.X", " plugin.x", "plugin%2Ex", "ｍｃｐ.x")


@pytest.mark.proves(
    "providers.credentials.reserved-provider-config", "providers.credentials.reserved-test"
)
async def test_reserved_ids_are_refused(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, configuration)
    for credential_id in RESERVED:
        keyed = {**configuration, "credential_id": credential_id}
        for method, path, sent in (
            ("POST", PROVIDERS, keyed),
            ("PATCH", f"{PROVIDERS}/{made['provider_id']}", {"credential_id": credential_id}),
            ("POST", f"{PROVIDERS}/test", keyed),
            ("POST", f"{PROVIDERS}/request-probe", {"provider": keyed, "stream": True}),
            ("POST", f"{PROVIDERS}/request-preview", {"provider": keyed}),
        ):
            answer = await app.http.request(method, path, json=sent)
            told = (answer.status_code, code_of(answer))
            assert told == (403, "CREDENTIAL_NAMESPACE_RESERVED"), (path, credential_id)
    for wrong in ("a/b", "a b", "名"):
        answer = await app.http.post(PROVIDERS, json={**configuration, "credential_id": wrong})
        assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    assert (await app.http.get(PROVIDERS)).json()["items"] == [made]
    assert upstream.received == []


@pytest.mark.proves("providers.credentials.reserved-resolver")
async def test_a_reserved_id_in_the_database_resolves_to_nothing(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    await app.services.credentials.set("mcp.server", CANARY)
    made = await create(app, configuration)
    service = app.services.providers
    target = await service.target(made["provider_id"], None)
    await app.services.database.write(
        lambda tx: tx.execute("UPDATE providers SET credential_id = 'mcp.server'").rowcount
    )
    events = [event async for event in service.stream(target, HELLO)]
    assert failure(events) == "CREDENTIAL_NAMESPACE_RESERVED"
    for call in (
        service.complete(target, HELLO),
        service.target(made["provider_id"], None),
        service.models(made["provider_id"]),
    ):
        with pytest.raises(ProjectError) as raised:
            await call
        assert raised.value.code == "CREDENTIAL_NAMESPACE_RESERVED"
    shown = (await app.http.get(f"{PROVIDERS}/{made['provider_id']}")).json()
    assert shown["credential_configured"] is False
    assert upstream.received == []


async def test_a_store_that_cannot_be_read_is_not_the_provider_s_fault(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    # A keyring, where there is one, has no file that could be broken.
    app.services.credentials._backend = "file"
    keyed = {**configuration, "credential_id": "k"}
    made = await create(app, keyed)
    await app.services.credentials.set("k", "some-secret")
    stored = app.data_dir / "credentials" / "credentials.bin"
    stored.write_bytes(b"damaged")
    for method, path, body in (
        ("POST", f"{PROVIDERS}/test", keyed),
        ("POST", f"{PROVIDERS}/request-probe", {"provider": keyed, "stream": True}),
        ("POST", f"{PROVIDERS}/request-probe", {"provider": keyed, "stream": False}),
        ("GET", f"{PROVIDERS}/{made['provider_id']}/models", None),
    ):
        answer = await app.http.request(method, path, json=body)
        assert code_of(answer) == "CREDENTIAL_STORE_ERROR", path
        assert answer.status_code == ERRORS["CREDENTIAL_STORE_ERROR"].status
    shown = (await app.http.get(f"{PROVIDERS}/{made['provider_id']}")).json()
    assert shown["credential_configured"] is False
    assert upstream.received == []
