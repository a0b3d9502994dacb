"""The configuration: what is taken, what is refused, and that it is kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import MODELS_DIR, running_app
from tests.fakes.openai_models import FakeModels
from tests.model_routing.conftest import Routing, new_provider
from tests.retrieval.models.real_model import OWN, lay

PATH = "/api/model-routing"
EMPTY = {"embedding": None, "transcription": None, "speaker_matching": None}


@pytest.mark.proves("providers.routing.get", "providers.routing.default")
async def test_a_fresh_configuration_is_empty(routing: Routing) -> None:
    answer = await routing.app.http.get(PATH)
    assert answer.status_code == 200
    none = {"installed": False, "model_id": None}
    assert answer.json() == {
        "config": {"version": 1, **EMPTY},
        "local_backends": {"embedding": none, "transcription": none, "speaker_matching": none},
    }


@pytest.mark.proves("providers.routing.local-backends")
async def test_local_backends(tmp_path: Path) -> None:
    lay(tmp_path / "models" / "minilm", embedding=OWN)
    async with running_app(tmp_path, models_dirs=(MODELS_DIR, tmp_path / "models")) as app:
        backends = (await app.http.get(PATH)).json()["local_backends"]
    assert backends["embedding"] == {"installed": True, "model_id": "MiniLM"}
    assert backends["transcription"]["installed"] is True
    assert "whisper" in backends["transcription"]["model_id"]


@pytest.mark.proves(
    "providers.routing.put",
    "providers.routing.endpoint-defaults",
    "providers.routing.route-shape",
)
async def test_a_whole_configuration_is_stored(routing: Routing) -> None:
    first = {
        "version": 1,
        "embedding": routing.route(dimensions=256),
        "transcription": routing.route(endpoint=None),
        "speaker_matching": routing.route(endpoint="/voices/compare", dimensions=None),
    }
    answer = await routing.app.http.put(PATH, json=first)
    assert answer.status_code == 200
    stored = answer.json()
    assert stored == {
        "version": 2,
        "embedding": routing.route(endpoint="/embeddings", dimensions=256),
        "transcription": routing.route(endpoint="/audio/transcriptions"),
        "speaker_matching": routing.route(endpoint="/voices/compare"),
    }
    assert await routing.config() == stored
    # What GET gives can be put back, and null takes a route away.
    answer = await routing.app.http.put(PATH, json={**stored, "embedding": None})
    assert answer.json() == {**stored, "embedding": None, "version": 3}
    stored = await routing.set(embedding=routing.route(), speaker_matching=routing.route())
    assert stored["embedding"] == routing.route(endpoint="/embeddings", dimensions=None)
    assert stored["speaker_matching"] == routing.route(endpoint="/audio/speaker-matches")
    assert routing.fake.asked == []


@pytest.mark.proves("providers.routing.version-conflict")
async def test_an_old_version_changes_nothing(routing: Routing) -> None:
    stored = await routing.set(embedding=routing.route())
    for version in (1, 3, 0):
        body = {**stored, "version": version, "embedding": None}
        answer = await routing.app.http.put(PATH, json=body)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "MODEL_ROUTING_VERSION_CONFLICT"
        assert answer.json()["error"]["details"] == {"version": 2}
    assert await routing.config() == stored


@pytest.mark.proves("providers.routing.version-race")
async def test_one_of_two_changes_at_once_wins(routing: Routing) -> None:
    bodies = [
        {"version": 1, **EMPTY, "embedding": routing.route(model=f"model-{number}")}
        for number in range(6)
    ]
    answers = await asyncio.gather(*(routing.app.http.put(PATH, json=body) for body in bodies))
    won = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(won) == 1
    assert won[0] == await routing.config()
    lost = [answer.json()["error"]["code"] for answer in answers if answer.status_code != 200]
    assert lost == ["MODEL_ROUTING_VERSION_CONFLICT"] * 5


WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("embedding", {"provider_id": ...}),
    ("embedding", {"model": ...}),
    ("transcription", {"provider_id": ...}),
    ("speaker_matching", {"model": ...}),
    ("embedding", {"model": " "}),
    ("embedding", {"model": "a\nb"}),
    ("embedding", {"model": "m" * 201}),
    ("embedding", {"base_url": "https://elsewhere.example/v1"}),
    ("embedding", {"dimensions": 0}),
    ("embedding", {"dimensions": 16385}),
    ("embedding", {"dimensions": -1}),
    ("embedding", {"dimensions": 10.5}),
    ("embedding", {"dimensions": "256"}),
    ("embedding", {"dimensions": True}),
    ("transcription", {"dimensions": 256}),
    ("speaker_matching", {"dimensions": 1}),
)


@pytest.mark.proves(
    "providers.routing.route-shape",
    "providers.routing.dimensions-range",
    "providers.routing.dimensions-embedding-only",
    "providers.routing.put-without-local-backends",
)
async def test_a_wrong_shape_is_refused(routing: Routing) -> None:
    kept = await routing.config()
    bodies: list[dict[str, Any]] = [
        {**kept, "local_backends": {}},
        {**kept, "chat": None},
        *({name: value for name, value in kept.items() if name != left} for left in kept),
    ]
    for capability, change in WRONG:
        route = {**routing.route(), **change}
        given = {name: value for name, value in route.items() if value is not ...}
        bodies.append({**kept, capability: given})
    for body in bodies:
        answer = await routing.app.http.put(PATH, json=body)
        assert answer.status_code == 422, body
        assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert await routing.config() == kept


@pytest.mark.proves("providers.routing.dimensions-range")
async def test_the_ends_of_the_range_of_dimensions(routing: Routing) -> None:
    for dimensions in (1, 16384):
        stored = await routing.set(embedding=routing.route(dimensions=dimensions))
        assert stored["embedding"]["dimensions"] == dimensions


ENDPOINTS = (
    "https://elsewhere.example/embeddings",
    "//elsewhere.example/embeddings",
    "http:/embeddings",
    "embeddings",
    "",
    "/",
    "/embeddings?key=1",
    "/embeddings#top",
    "\\embeddings",
    "/v1\\..\\embeddings",
    "/../embeddings",
    "/v1/../embeddings",
    "/v1/..",
    "/./embeddings",
    "/v1//embeddings",
    "/%2e%2e/embeddings",
    "/v1/%2E%2E/embeddings",
    "/v1/..%2fembeddings",
    "/v1%5c..",
    "/embeddings%3fkey=1",
    "/embed dings",
    " /embeddings",
    "/embeddings\r\nHost: elsewhere.example",
    "/embeddings\n",
    "/嵌入",
    "/@elsewhere.example:80/..",
    "/" + "e" * 200,
)


@pytest.mark.proves("providers.routing.endpoint-path")
async def test_an_endpoint_is_a_path_below_the_provider(routing: Routing) -> None:
    kept = await routing.config()
    for capability in EMPTY:
        for endpoint in ENDPOINTS:
            body = {**kept, capability: routing.route(endpoint=endpoint)}
            answer = await routing.app.http.put(PATH, json=body)
            assert answer.status_code == 422, endpoint
            assert answer.json()["error"]["details"]["errors"][0]["loc"][-1] == "endpoint"
    assert await routing.config() == kept
    for endpoint in ("/v1/embeddings", "/api/v3/embed-it_2.0/", "/models/a:embed", "/...x"):
        stored = await routing.set(embedding=routing.route(endpoint=endpoint))
        assert stored["embedding"]["endpoint"] == endpoint


@pytest.mark.proves("providers.routing.provider-types", "providers.routing.unknown-provider")
async def test_providers_that_no_route_can_lead_to(routing: Routing, fake: FakeModels) -> None:
    kept = await routing.config()
    refused = {"provider_none": (404, "RESOURCE_NOT_FOUND")}
    for provider_type in ("openai_responses", "anthropic", "ollama"):
        provider_id = await new_provider(routing.app, fake.url, provider_type=provider_type)
        refused[provider_id] = (400, "MODEL_CAPABILITY_MISMATCH")
    for capability in EMPTY:
        for provider_id, expected in refused.items():
            body = {**kept, capability: routing.route(provider_id=provider_id)}
            answer = await routing.app.http.put(PATH, json=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == expected
            assert error["details"] == {"capability": capability, "provider_id": provider_id}
    assert await routing.config() == kept
    chat = await new_provider(routing.app, fake.url, provider_type="openai_chat")
    assert (await routing.set(embedding=routing.route(provider_id=chat)))["version"] == 2


@pytest.mark.proves("providers.routing.persistence")
async def test_a_restart_keeps_the_configuration(tmp_path: Path, fake: FakeModels) -> None:
    async with running_app(tmp_path, models_dirs=()) as app:
        routing = Routing(app, fake, await new_provider(app, fake.url))
        await routing.set(transcription=routing.route())
        stored = await routing.set(embedding=routing.route(dimensions=8))
    async with running_app(tmp_path, models_dirs=()) as app:
        again = Routing(app, fake, routing.provider_id)
        assert await again.config() == stored
        assert stored["version"] == 3
        assert (await again.set(embedding=None))["version"] == 4


@pytest.mark.proves("providers.crud.delete-in-use")
async def test_a_provider_that_a_route_leads_to_stays(routing: Routing) -> None:
    path = f"/api/providers/{routing.provider_id}"
    for capability in EMPTY:
        await routing.set(**{capability: routing.route()})
        answer = await routing.app.http.delete(path)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "PROVIDER_IN_USE"
        assert (await routing.app.http.get(path)).status_code == 200
        await routing.set(**{capability: None})
    answer = await routing.app.http.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await routing.app.http.get(path)).status_code == 404


async def test_a_route_and_a_deletion_at_once(routing: Routing) -> None:
    """Whoever comes first wins: no route leads to a provider that is gone."""
    for _ in range(5):
        provider_id = await new_provider(routing.app, routing.fake.url)
        body = {**await routing.config(), "embedding": routing.route(provider_id=provider_id)}
        put, delete = await asyncio.gather(
            routing.app.http.put(PATH, json=body),
            routing.app.http.delete(f"/api/providers/{provider_id}"),
        )
        assert (put.status_code, delete.status_code) in ((200, 409), (404, 204))
        await routing.set(embedding=None)


async def test_a_route_makes_the_capability_available(routing: Routing) -> None:
    for capability in EMPTY:
        found = (await routing.app.http.get("/api/system/info")).json()["capabilities"]
        assert found[capability]["available"] is False
        await routing.set(**{capability: routing.route()})
        found = (await routing.app.http.get("/api/system/info")).json()["capabilities"]
        assert found[capability] == {"available": True, "reason": None}
