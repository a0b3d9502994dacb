"""Providers are kept, changed and deleted."""

import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.app import offline_openapi
from sidecar.kernel.errors import ProjectError
from tests.app_client import RunningApp, running_app
from tests.fakes import anthropic, openai_chat
from tests.fakes.upstream import FakeUpstream
from tests.providers.bench import HELLO, joined, names

PROVIDERS = "/api/providers"
FULL = {
    "name": "某服务 🌏",
    "provider_type": "openai_compatible",
    "base_url": "http://192.168.1.9:8000/v1",
    "credential_id": "vendor-1",
    "default_model": "m",
    "capabilities": ["chat", "streaming", "tool_calling"],
    "enabled": True,
    "request_overrides": [
        {"op": "set", "path": "/thinking", "value": None, "capabilities": ["chat"]},
        {"op": "remove", "path": "/temperature"},
    ],
}


async def create(app: RunningApp, body: dict[str, Any]) -> dict[str, Any]:
    answer = await app.http.post(PROVIDERS, json=body)
    assert answer.status_code == 201, answer.text
    provider: dict[str, Any] = answer.json()
    return provider


def code_of(answer: Any) -> str:
    return str(answer.json()["error"]["code"])


@pytest.mark.proves(
    "providers.crud.create",
    "providers.crud.get",
    "providers.crud.list",
    "providers.crud.create-fields",
)
async def test_create_and_read(app: RunningApp) -> None:
    made = await create(app, FULL)
    assert made["provider_id"]
    for name in ("name", "provider_type", "base_url", "credential_id", "default_model"):
        assert made[name] == FULL[name]
    assert (await app.http.get(f"{PROVIDERS}/{made['provider_id']}")).json() == made
    listed = (await app.http.get(PROVIDERS)).json()
    assert listed == {"items": [made], "page": {"total": 1, "limit": 50, "offset": 0}}
    small = await create(app, {key: FULL[key] for key in ("name", "provider_type", "base_url")})
    assert small["credential_id"] is None and small["default_model"] is None
    assert (small["capabilities"], small["enabled"], small["request_overrides"]) == ([], True, [])
    page = (await app.http.get(PROVIDERS, params={"limit": 1, "offset": 1})).json()
    assert [item["provider_id"] for item in page["items"]] == [small["provider_id"]]
    assert page["page"] == {"total": 2, "limit": 1, "offset": 1}


WRONG_FIELDS: list[dict[str, Any]] = [
    {"name": ""},
    {"name": "x" * 101},
    {"name": "  "},
    {"name": None},
    {"unknown": 1},
    {"enabled": "maybe"},
    {"capabilities": ["telepathy"]},
    {"default_model": ""},
    {"credential_id": ""},
]


@pytest.mark.proves("providers.crud.create-fields")
async def test_fields_that_are_wrong(app: RunningApp) -> None:
    for change in WRONG_FIELDS:
        answer = await app.http.post(PROVIDERS, json={**FULL, **change})
        assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR"), change
    assert (await app.http.get(PROVIDERS)).json()["items"] == []


@pytest.mark.proves("providers.crud.types")
async def test_types(app: RunningApp) -> None:
    for kind in ("openai_responses", "openai_chat", "openai_compatible", "anthropic", "ollama"):
        assert (await create(app, {**FULL, "provider_type": kind}))["provider_type"] == kind
    for wrong in ("gemini", "OPENAI_CHAT", "", None):
        answer = await app.http.post(PROVIDERS, json={**FULL, "provider_type": wrong})
        assert answer.status_code == 422


NO_ADDRESSES = (
    *("", "api.example.com/v1", "/v1", "//api.example.com", "ftp://api.example.com"),
    *("file:///etc/passwd", "javascript:alert(1)", "http://", "http:///v1", "http://:8000"),
    *("https://user@api.example.com", "https://user:pw@api.example.com/v1", "http://a:99999"),
    *("https://api.example.com/v1?key=1", "https://api.example.com/v1#top", "http://a:0"),
    *("https://api.example.com/v1?", "http://a b/", "http://a\\@b/", "http://a/\n", "http://[::1"),
)


@pytest.mark.proves("providers.crud.base-url")
async def test_addresses_that_are_none(app: RunningApp) -> None:
    made = await create(app, FULL)
    path = f"{PROVIDERS}/{made['provider_id']}"
    for url in NO_ADDRESSES:
        for kind in (PROVIDERS, f"{PROVIDERS}/test"):
            answer = await app.http.post(kind, json={**FULL, "base_url": url})
            assert answer.status_code == 422, url
        assert (await app.http.patch(path, json={"base_url": url})).status_code == 422, url
    assert (await app.http.get(PROVIDERS)).json()["items"] == [made]


@pytest.mark.proves("providers.crud.base-url")
async def test_addresses_of_this_machine_and_the_network(app: RunningApp) -> None:
    for url in (
        *("http://127.0.0.1:11434", "http://localhost:1234/v1", "http://[::1]:8080"),
        *("http://10.0.0.7/v1/", "https://models.local:8443/a/b", "http://例子.测试/v1"),
    ):
        assert (await create(app, {**FULL, "base_url": url}))["base_url"] == url.rstrip("/")


@pytest.mark.proves("providers.crud.not-found")
async def test_a_provider_that_is_not_there(app: RunningApp) -> None:
    for method, path, body in (
        ("GET", f"{PROVIDERS}/provider_nope", None),
        ("PATCH", f"{PROVIDERS}/provider_nope", {"name": "x"}),
        ("PATCH", f"{PROVIDERS}/provider_nope", {}),
        ("DELETE", f"{PROVIDERS}/provider_nope", None),
        ("GET", f"{PROVIDERS}/provider_nope/models", None),
    ):
        answer = await app.http.request(method, path, json=body)
        assert (answer.status_code, code_of(answer)) == (404, "RESOURCE_NOT_FOUND"), path


@pytest.mark.proves("providers.crud.patch")
async def test_patch_changes_what_is_sent(app: RunningApp) -> None:
    made = await create(app, FULL)
    path = f"{PROVIDERS}/{made['provider_id']}"
    changed = (await app.http.patch(path, json={"name": "新", "credential_id": None})).json()
    assert changed.pop("updated_at") >= made["updated_at"]
    expected = {**made, "name": "新", "credential_id": None}
    expected.pop("updated_at")
    assert changed == expected
    for wrong in ({"name": None}, {"enabled": None}, {"base_url": None}, {"provider_id": "x"}):
        assert (await app.http.patch(path, json=wrong)).status_code == 422
    assert (await app.http.patch(path, json={})).json()["name"] == "新"


@pytest.mark.proves("providers.crud.patch-provider-type", "providers.adapter.anthropic")
async def test_a_new_type_is_spoken_from_the_next_call_on(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, configuration)
    path = f"{PROVIDERS}/{made['provider_id']}"
    upstream.answers.append(openai_chat.models("a"))
    assert [m["model"] for m in (await app.http.get(f"{path}/models")).json()["items"]] == ["a"]
    changed = (await app.http.patch(path, json={"provider_type": "anthropic"})).json()
    assert changed["provider_type"] == "anthropic"
    upstream.answers.append(anthropic.models("b"))
    assert [m["model"] for m in (await app.http.get(f"{path}/models")).json()["items"]] == ["b"]
    assert [request.path for request in upstream.received] == ["/models", "/models?limit=1000"]
    assert "anthropic-version" in upstream.received[1].headers


@pytest.mark.proves("providers.crud.delete")
async def test_delete(app: RunningApp) -> None:
    made = await create(app, FULL)
    answer = await app.http.delete(f"{PROVIDERS}/{made['provider_id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await app.http.get(f"{PROVIDERS}/{made['provider_id']}")).status_code == 404
    assert (await app.http.get(PROVIDERS)).json()["page"]["total"] == 0


async def test_a_provider_that_is_needed_stays(app: RunningApp) -> None:
    needed = True
    app.services.providers.refuse_deletion_while(lambda _, __: needed)
    made = await create(app, FULL)
    path = f"{PROVIDERS}/{made['provider_id']}"
    answer = await app.http.delete(path)
    assert (answer.status_code, code_of(answer)) == (409, "PROVIDER_IN_USE")
    assert (await app.http.get(path)).status_code == 200
    needed = False
    assert (await app.http.delete(path)).status_code == 204


@pytest.mark.proves("providers.crud.persistence")
async def test_providers_outlive_a_restart(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        await create(app, FULL)
        await create(app, {**FULL, "enabled": False, "provider_type": "ollama"})
        before = (await app.http.get(PROVIDERS)).json()
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        assert (await app.http.get(PROVIDERS)).json() == before
        assert len(before["items"]) == 2


@pytest.mark.proves("providers.crud.no-second-crud")
def test_there_is_one_crud() -> None:
    paths = offline_openapi()["paths"]
    about = {
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method in operations
        if "provider" in path
    }
    assert about == {
        "GET /api/providers",
        "POST /api/providers",
        "GET /api/providers/presets",
        "GET /api/providers/{provider_id}",
        "PATCH /api/providers/{provider_id}",
        "DELETE /api/providers/{provider_id}",
        "GET /api/providers/{provider_id}/models",
        "POST /api/providers/test",
        "POST /api/providers/request-rules/validate",
        "POST /api/providers/request-preview",
        "POST /api/providers/request-probe",
    }
    schemas = json.dumps({path: paths[path] for path in paths if "provider" not in path})
    assert "ProviderCreateRequest" not in schemas and "ProviderPatch" not in schemas


@pytest.mark.proves("providers.crud.mock-development-only", "providers.stream.mock")
async def test_the_mock_is_for_development(
    tmp_path: Path, app: RunningApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    mock = {**FULL, "provider_type": "mock", "credential_id": None, "default_model": "mock"}
    for path, body in (
        (PROVIDERS, mock),
        (f"{PROVIDERS}/test", mock),
        (f"{PROVIDERS}/request-preview", {"provider": mock}),
        (f"{PROVIDERS}/request-probe", {"provider": mock, "stream": True}),
    ):
        answer = await app.http.post(path, json=body)
        assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR"), path
    made = await create(app, FULL)
    changed = await app.http.patch(
        f"{PROVIDERS}/{made['provider_id']}", json={"provider_type": "mock"}
    )
    assert changed.status_code == 422
    presets = (await app.http.get(f"{PROVIDERS}/presets")).json()["items"]
    assert "mock" not in {preset["provider_type"] for preset in presets}

    monkeypatch.setenv("APP_ENVIRONMENT", "development")
    folder = tmp_path / "development"
    folder.mkdir()
    async with running_app(folder, open_vault=False, models_dirs=()) as development:
        made = await create(development, mock)
        probe = {"provider": mock, "stream": True}
        told = (await development.http.post(f"{PROVIDERS}/request-probe", json=probe)).json()
        assert told["success"] and told["message"].startswith("Mock: ")
        service = development.services.providers
        target = await service.target(made["provider_id"], None)
        events = [event async for event in service.stream(target, HELLO)]
        assert joined(events) == "Mock: 你好"
        assert names(events).count("Done") == 1 and names(events)[-1] == "Done"
    # Planted in the database of a production run, it is refused all the same.
    await app.services.database.write(
        lambda tx: tx.execute("UPDATE providers SET provider_type = 'mock'").rowcount
    )
    (listed,) = (await app.http.get(PROVIDERS)).json()["items"]
    answer = await app.http.get(f"{PROVIDERS}/{listed['provider_id']}/models")
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    with pytest.raises(ProjectError) as raised:
        await app.services.providers.target(listed["provider_id"], None)
    assert raised.value.status == 422


@pytest.mark.proves("providers.crud.disabled")
async def test_a_disabled_provider_is_not_asked(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    made = await create(app, {**configuration, "enabled": False})
    assert (await app.http.get(PROVIDERS)).json()["items"][0]["enabled"] is False
    answer = await app.http.get(f"{PROVIDERS}/{made['provider_id']}/models")
    assert (answer.status_code, code_of(answer)) == (409, "PROVIDER_DISABLED")
    with pytest.raises(ProjectError) as raised:
        await app.services.providers.target(made["provider_id"], None)
    assert (raised.value.code, raised.value.status) == ("PROVIDER_DISABLED", 409)
    assert upstream.received == []


@pytest.mark.proves("providers.presets.list", "providers.presets.usable")
async def test_presets(app: RunningApp) -> None:
    english = (await app.http.get(f"{PROVIDERS}/presets", headers={"Accept-Language": "en"})).json()
    chinese = (
        await app.http.get(f"{PROVIDERS}/presets", headers={"Accept-Language": "zh-CN"})
    ).json()
    ids = [preset["preset_id"] for preset in english["items"]]
    assert len(set(ids)) == len(ids)
    assert set(ids) >= {
        *("deepseek", "dashscope", "moonshot", "zhipu", "siliconflow", "volcengine", "minimax"),
        *("stepfun", "openai", "anthropic", "google", "openrouter", "groq", "mistral", "xai"),
        *("lmstudio", "ollama", "vllm", "custom"),
    }
    for preset, other in zip(english["items"], chinese["items"], strict=True):
        assert preset["logo_id"] and preset["description"] and preset["credential_hint"]
        assert preset["description"] != other["description"]
        assert {"chat", "streaming"} <= set(preset["capabilities"])
        wanted = ("name", "provider_type", "base_url")
        made = await create(app, {key: preset[key] for key in wanted} | {"credential_id": "k"})
        assert made["base_url"] == preset["base_url"]
        # Without a list of its own, a provider is for what its preset says.
        target = await app.services.providers.target(made["provider_id"], "m")
        assert target.capabilities == set(preset["capabilities"])


@pytest.mark.proves("providers.errors.capability-mismatch")
async def test_what_is_not_for_chat_is_not_chatted_with(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    only = await create(app, {**configuration, "capabilities": ["embedding"]})
    any_model = await create(app, configuration)
    service = app.services.providers
    for provider_id, model in (
        (only["provider_id"], "m"),
        (any_model["provider_id"], "text-embedding-3-small"),
    ):
        with pytest.raises(ProjectError) as raised:
            await service.target(provider_id, model)
        assert (raised.value.code, raised.value.status) == ("MODEL_CAPABILITY_MISMATCH", 400)
    with pytest.raises(ProjectError) as raised:
        await service.target(any_model["provider_id"], "m", need="tool_calling")
    assert raised.value.code == "MODEL_CAPABILITY_MISMATCH"
    nameless = await create(app, {**configuration, "default_model": None})
    with pytest.raises(ProjectError) as raised:
        await service.target(nameless["provider_id"], None)
    assert raised.value.code == "MODEL_NOT_FOUND"
    assert upstream.received == []
