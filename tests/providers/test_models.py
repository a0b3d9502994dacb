"""Lists of models: asked of the provider, with nothing claimed that it doesn't tell."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.providers.protocols.adapters import ADAPTERS
from sidecar.providers.protocols.profiles import profile_of
from tests.app_client import RunningApp, running_app
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Received
from tests.providers.bench import PROTOCOLS, Bench, fake
from tests.providers.test_crud import PROVIDERS, code_of, create


@pytest.mark.proves("providers.models.list", "providers.models.optional-fields")
async def test_models_are_asked_of_the_provider(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    path = f"{PROVIDERS}/{(await create(app, configuration))['provider_id']}/models"
    for names in (["a", "b"], ["c"]):
        upstream.answers.append(openai_chat.models(*names))
        answer = await app.http.get(path)
        assert answer.status_code == 200
        assert answer.json()["items"] == [
            {
                "model": name,
                "display_name": name,
                "capabilities": ["chat", "streaming"],
                "context_window": None,
                "max_output_tokens": None,
                "deprecated": False,
                "metadata": {},
            }
            for name in names
        ]
    assert [(r.method, r.path) for r in upstream.received] == [("GET", "/models")] * 2


@pytest.mark.proves("providers.models.conservative-capabilities")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_nothing_is_claimed_that_is_not_told(bench: Bench, protocol: str) -> None:
    target = await bench.target(protocol)
    bench.upstream.answers.append(
        fake(protocol).models("gpt-5", "claude-x", "nomic-embed-text", "whisper-1")
    )
    found = (await bench.service.models(target.provider_id)).items
    assert [item.capabilities for item in found] == [
        ["chat", "streaming"],
        ["chat", "streaming"],
        ["embedding"],
        ["transcription"],
    ]


def listed(url: str, body: Any) -> list[dict[str, Any]]:
    """Read a list of models as the vendor at an address sends it."""
    found = ADAPTERS["openai_compatible"].models(body, profile_of(url))
    return [item.model_dump() for item in found]


VENDORS = [
    (
        "https://openrouter.ai/api/v1",
        {
            "id": "a/b",
            "name": "A: B",
            "context_length": 128000,
            "architecture": {"input_modalities": ["text", "image"]},
            "top_provider": {"max_completion_tokens": 8192},
            "supported_parameters": ["tools", "temperature"],
        },
        {
            "display_name": "A: B",
            "context_window": 128000,
            "max_output_tokens": 8192,
            "capabilities": ["chat", "streaming", "tool_calling", "vision"],
        },
    ),
    (
        "https://api.mistral.ai/v1",
        {
            "id": "mistral-small",
            "capabilities": {"completion_chat": True, "function_calling": True, "vision": False},
            "max_context_length": 32768,
            "deprecation": "2026-01-01",
        },
        {
            "context_window": 32768,
            "deprecated": True,
            "capabilities": ["chat", "streaming", "tool_calling"],
        },
    ),
    (
        "https://api.groq.com/openai/v1",
        {"id": "g", "active": False, "context_window": 8192, "max_completion_tokens": 1024},
        {"context_window": 8192, "max_output_tokens": 1024, "deprecated": True},
    ),
    (
        "https://api.moonshot.cn/v1",
        {"id": "k", "context_length": 262144, "supports_image_in": True},
        {"context_window": 262144, "capabilities": ["chat", "streaming", "vision"]},
    ),
    ("http://127.0.0.1:8000/v1", {"id": "v", "max_model_len": 4096}, {"context_window": 4096}),
    (
        "http://127.0.0.1:8080/v1",
        {"id": "l", "meta": {"n_ctx_train": 8192}},
        {"context_window": 8192},
    ),
    (
        "https://openrouter.ai/api/v1",
        {"id": "odd", "context_length": "many", "supported_parameters": 7, "architecture": []},
        {"context_window": None, "capabilities": ["chat", "streaming"]},
    ),
]


@pytest.mark.parametrize(("url", "item", "told"), VENDORS, ids=lambda value: str(value)[:32])
def test_what_a_vendor_tells_is_taken(url: str, item: dict[str, Any], told: dict[str, Any]) -> None:
    (found,) = listed(url, {"data": [item]})
    assert {name: found[name] for name in told} == told


async def test_what_anthropic_tells_is_taken(bench: Bench) -> None:
    target = await bench.target("anthropic")
    item = {
        "id": "claude-x",
        "type": "model",
        "display_name": "Claude X",
        "max_input_tokens": 200000,
        "max_tokens": 64000,
        "capabilities": {"image_input": {"supported": True}, "thinking": {"supported": False}},
    }
    bench.upstream.answers.append(Answer.of_json({"data": [item], "has_more": False}))
    (found,) = (await bench.service.models(target.provider_id)).items
    assert (found.display_name, found.context_window) == ("Claude X", 200000)
    assert (found.max_output_tokens, found.capabilities) == (64000, ["chat", "streaming", "vision"])
    again = await bench.service.target(target.provider_id, "claude-x")
    assert (again.context_window, again.max_output_tokens) == (200000, 64000)


async def test_what_ollama_shows_is_taken(bench: Bench) -> None:
    target = await bench.target("ollama")

    def respond(received: Received) -> Answer:
        if received.path == "/api/tags":
            answer: Answer = fake("ollama").models("qwen3:8b", "bge-m3", "gone")
            return answer
        shown = {
            "qwen3:8b": {
                "capabilities": ["completion", "tools", "thinking"],
                "model_info": {"qwen3.context_length": 40960},
            },
            "bge-m3": {"capabilities": ["embedding"]},
        }.get(received.json["model"])
        return Answer.of_json(shown) if shown else fake("ollama").refusal(404, "", "not found")

    bench.upstream.respond = respond
    first, second, third = (await bench.service.models(target.provider_id)).items
    assert first.capabilities == ["chat", "streaming", "tool_calling", "reasoning"]
    assert first.context_window == 40960
    assert second.capabilities == ["embedding"]
    assert third.capabilities == ["chat", "streaming"]
    with pytest.raises(ProjectError) as raised:
        await bench.service.target(target.provider_id, "bge-m3")
    assert raised.value.code == "MODEL_CAPABILITY_MISMATCH"


@pytest.mark.proves("providers.models.upstream-error")
async def test_a_list_that_fails_is_an_error(
    app: RunningApp, upstream: FakeUpstream, configuration: dict[str, Any]
) -> None:
    path = f"{PROVIDERS}/{(await create(app, configuration))['provider_id']}/models"
    for status, code, expected in (
        (401, "PROVIDER_AUTH_FAILED", 502),
        (500, "PROVIDER_UNAVAILABLE", 503),
        (404, "PROVIDER_PROTOCOL_ERROR", 502),
    ):
        upstream.answers.append(openai_chat.refusal(status, "x", "leaked words"))
        answer = await app.http.get(path)
        assert (answer.status_code, code_of(answer)) == (expected, code)
        assert "leaked" not in answer.text
    upstream.answers.append(openai_chat.refusal(429, "x", "slow", Retry_After="7"))
    answer = await app.http.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    upstream.answers.append(Answer.of_json({"object": "list"}))
    answer = await app.http.get(path)
    assert (answer.status_code, code_of(answer)) == (502, "PROVIDER_INVALID_RESPONSE")


async def test_what_was_told_outlives_a_restart(tmp_path: Path, upstream: FakeUpstream) -> None:
    body = {"name": "a", "provider_type": "openai_compatible", "base_url": upstream.url}
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        made = await create(app, body)
        told = {"data": [{"id": "v", "max_model_len": 4096}]}
        upstream.answers.append(Answer.of_json(told))
        await app.http.get(f"{PROVIDERS}/{made['provider_id']}/models")
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        service = app.services.providers
        assert (await service.target(made["provider_id"], "v")).context_window == 4096
        assert (await service.target(made["provider_id"], "w")).context_window is None
        path = f"{PROVIDERS}/{made['provider_id']}"
        await app.http.patch(path, json={"name": "b"})
        assert (await service.target(made["provider_id"], "v")).context_window == 4096
        await app.http.patch(path, json={"base_url": "http://127.0.0.1:9"})
        assert (await service.target(made["provider_id"], "v")).context_window is None
        assert (await app.http.delete(path)).status_code == 204
