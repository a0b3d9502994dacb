"""Search with a provider's vectors: a server answers over a socket, and its vectors have an index of their own."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sidecar.retrieval.models import routed as routed_models
from sidecar.retrieval.vectors.file import VectorFile
from tests.app_client import running_app
from tests.fakes.embedders import HashEmbedder, Models
from tests.fakes.openai_models import Answer, Asked, FakeModels, embeddings, fake_models
from tests.model_routing.conftest import Routing, new_provider
from tests.retrieval.conftest import Library
from tests.vault.conftest import eventually

DIMENSION = 48


@dataclass(slots=True)
class Routed:
    """A vault with a local model that tests can see through, and a provider."""

    library: Library
    routing: Routing
    fake: FakeModels

    async def found(self, mode: str = "vector") -> tuple[str, str | None, int]:
        """Search; return who embedded the query, why it isn't the other, and the number of hits."""
        hits = await self.library.search("word", mode)
        embedding = hits[0]["provenance"]["embedding"]
        return embedding["source"], embedding["fallback_reason"], len(hits)

    async def is_noted(self, code: str) -> bool:
        """Whether the newest record of the diagnostics is a fallback for this reason."""
        answer = await self.routing.app.http.get("/api/local-models/diagnostics")
        records = answer.json()["items"]
        return bool(records) and (records[0]["kind"], records[0]["fallback_reason"]) == (
            "fallback",
            code,
        )

    async def rebuilt(self) -> dict[str, Any]:
        """Build the vectors anew and return the state of the index."""
        state = await self.library.rebuild()
        assert state["status"] == "idle", state
        return state

    def embedded(self) -> list[str]:
        """What the provider was given to embed."""
        return [text for asked in self.fake.asked for text in asked.json["input"]]


@pytest.fixture
async def fake() -> AsyncIterator[FakeModels]:
    async with fake_models(embeddings(DIMENSION)) as server:
        yield server


@pytest.fixture
async def routed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeModels
) -> AsyncIterator[Routed]:
    models = Models(HashEmbedder())
    monkeypatch.setattr("sidecar.services.LocalModelSource", lambda *_, **__: models)
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        routing = Routing(app, fake, await new_provider(app, fake.url))
        yield Routed(Library(app, app.vault, models), routing, fake)


@pytest.mark.proves(
    "retrieval.spaces.remote-own-index",
    "retrieval.spaces.remote-fallback",
    "retrieval.index-status.route",
    "retrieval.spaces.unset-route",
    "providers.routing.unset-local",
    "retrieval.search.usage",
)
async def test_a_provider_embeds_blocks_and_queries(routed: Routed) -> None:
    library, routing = routed.library, routed.routing
    await library.create("Note", "a word of mine")
    await routed.rebuilt()
    assert routed.fake.asked == []
    await routing.set(embedding=routing.route())
    state = await library.index()
    assert (state["embedding"]["model_id"], state["embedding"]["source"]) == ("routed-model", "api")
    assert state["vector_index"] is None
    # There is nothing to compare with yet, so the provider isn't asked at all.
    assert await routed.found() == ("local", "VECTOR_INDEX_REBUILD_REQUIRED", 1)
    assert routed.fake.asked == []
    state = await routed.rebuilt()
    assert state["embedding"]["dimension"] == DIMENSION
    assert state["vector_index"] == {**state["embedding"], "compatible": True}
    before = len(routed.fake.asked)
    assert await routed.found() == ("api", None, 1)
    assert await routed.found("hybrid") == ("api", None, 1)
    assert routed.embedded()[-2:] == ["word", "word"]
    rows = (await routing.attempts())[before:]
    assert [(row["source"], row["capability"], row["status"]) for row in rows] == [
        ("embedding", "embedding", "completed")
    ] * 2
    assert [row["total_tokens"] for row in rows] == [4, 4]
    # An edit is embedded by both; without the route the local index serves again.
    await library.create("Second", "word too")
    await library.at_rest()
    assert await routed.found() == ("api", None, 2)
    await routing.set(embedding=None)
    assert await routed.found() == ("local", None, 2)
    # The same route again finds its index as it left it, but for what has come since.
    await library.create("Third", "word as well")
    await library.at_rest()
    await routing.set(embedding=routing.route())
    await library.at_rest()
    assert await routed.found() == ("api", None, 3)
    assert routed.embedded().count(routed.embedded()[-2]) == 1


@pytest.mark.proves("retrieval.spaces.remote-own-index", "retrieval.spaces.no-mixing")
async def test_vectors_of_both_lie_apart(routed: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    library, routing = routed.library, routed.routing
    await library.create("Note", "a word of mine")
    await routed.rebuilt()
    await routing.set(embedding=routing.route(dimensions=64))
    await routed.rebuilt()
    # Both have 64 dimensions here: only their files keep them apart.
    compared: list[tuple[int, int]] = []
    search = VectorFile.search

    def noted(self: VectorFile, vector: Any, limit: int, allowed: Any) -> Any:
        compared.append((id(self), vector.shape[0]))
        return search(self, vector, limit, allowed)

    monkeypatch.setattr(VectorFile, "search", noted)
    assert (await routed.found())[0] == "api"
    await routing.set(embedding=None)
    assert (await routed.found())[0] == "local"
    assert len({file for file, _ in compared}) == 2


@pytest.mark.proves("retrieval.spaces.remote-changed")
@pytest.mark.parametrize("part", ["model", "endpoint", "dimensions", "provider", "base_url"])
async def test_another_route_needs_another_index(
    routed: Routed, fake: FakeModels, part: str
) -> None:
    library, routing = routed.library, routed.routing
    await library.create("Note", "a word of mine")
    await routed.rebuilt()
    route = routing.route(dimensions=DIMENSION)
    await routing.set(embedding=route)
    await routed.rebuilt()
    async with fake_models(embeddings(DIMENSION)) as other:
        if part == "base_url":
            path = f"/api/providers/{routing.provider_id}"
            await routing.app.http.patch(path, json={"base_url": other.url})
        else:
            changes: dict[str, dict[str, Any]] = {
                "model": {"model": "other"},
                "endpoint": {"endpoint": "/v2/embeddings"},
                "dimensions": {"dimensions": 32},
                "provider": {"provider_id": await new_provider(routing.app, other.url)},
            }
            await routing.set(embedding={**route, **changes[part]})
        before = len(fake.asked)
        assert await routed.found() == ("local", "VECTOR_INDEX_REBUILD_REQUIRED", 1)
        assert (len(fake.asked), other.asked) == (before, [])
        assert (await library.index())["vector_index"]["compatible"] is False
        await routed.rebuilt()
        assert await routed.found() == ("api", None, 1)


async def test_another_route_of_sound_leaves_the_index(routed: Routed) -> None:
    await routed.library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    await routed.rebuilt()
    await routed.routing.set(transcription=routed.routing.route())
    assert await routed.found() == ("api", None, 1)


@pytest.mark.proves("retrieval.spaces.remote-fallback", "retrieval.spaces.fallback-reason")
async def test_the_local_index_steps_in(routed: Routed) -> None:
    await routed.library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    # Built for the provider, and for the local model that had none yet.
    await routed.rebuilt()
    assert await routed.found() == ("api", None, 1)
    for answer, code in (
        (Answer({}, 401), "PROVIDER_AUTH_FAILED"),
        (Answer({}, 429), "PROVIDER_RATE_LIMITED"),
        (Answer({}, 503), "PROVIDER_UNAVAILABLE"),
        (Answer(fault="drop"), "PROVIDER_UNAVAILABLE"),
        (Answer({"data": []}), "PROVIDER_INVALID_RESPONSE"),
        (Answer({"data": [{"embedding": [1.0] * 47}]}), "EMBEDDING_DIMENSION_MISMATCH"),
    ):
        before = len(routed.fake.asked)
        routed.fake.script = lambda _, answer=answer: answer  # type: ignore[misc]
        assert await routed.found() == ("local", code, 1)
        # What a kept connection swallowed goes out again on a new one; all else is asked once.
        asked = 2 if answer.fault == "drop" else 1
        assert len(routed.fake.asked) == before + asked
        await eventually(lambda code=code: routed.is_noted(code))  # type: ignore[misc]
    path = f"/api/providers/{routed.routing.provider_id}"
    await routed.routing.app.http.patch(path, json={"enabled": False})
    assert await routed.found() == ("local", "PROVIDER_DISABLED", 1)


@pytest.mark.proves("retrieval.spaces.remote-fallback", "retrieval.spaces.fallback-reason")
async def test_a_silent_provider_holds_up_one_search_and_no_more(
    routed: Routed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await routed.library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    await routed.rebuilt()
    monkeypatch.setattr(routed_models, "QUERY_SECONDS", 1.0)
    routed.fake.answer(fault="hang")
    before = len(routed.fake.asked)
    for _ in range(3):
        assert await routed.found() == ("local", "PROVIDER_TIMEOUT", 1)
        assert len(routed.fake.asked) == before + 1
    # Another route has kept nobody waiting, and in time the first is asked again.
    route = routed.routing.route(model="another")
    routed.fake.script = embeddings(DIMENSION)
    await routed.routing.set(embedding=route)
    await routed.rebuilt()
    assert await routed.found() == ("api", None, 1)
    monkeypatch.setattr(routed_models, "SPARED_SECONDS", 0.0)
    routed.fake.answer(fault="hang")
    for _ in range(2):
        before = len(routed.fake.asked)
        assert await routed.found() == ("local", "PROVIDER_TIMEOUT", 1)
        assert len(routed.fake.asked) == before + 1


@pytest.mark.proves("retrieval.spaces.remote-coverage")
async def test_an_index_with_a_gap_is_not_used(routed: Routed) -> None:
    await routed.library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    await routed.rebuilt()
    routed.fake.answer({}, 400)
    await routed.library.create("Second", "word too")
    await routed.library.at_rest()
    # The provider isn't asked, or its failure would be the reason.
    assert await routed.found() == ("local", "VECTOR_INDEX_REBUILD_REQUIRED", 2)
    routed.fake.script = embeddings(DIMENSION)
    await routed.rebuilt()
    assert await routed.found() == ("api", None, 2)


async def test_a_rate_limit_is_waited_out_while_building(routed: Routed) -> None:
    for number in range(12):
        await routed.library.create(f"Note {number}", f"word {number}")
    await routed.routing.set(embedding=routed.routing.route())
    good = embeddings(DIMENSION)
    refusals = iter([429, 200, 503, 429] + [200] * 50)

    def script(asked: Asked) -> Answer:
        status = next(refusals)
        return good(asked) if status == 200 else Answer({}, status, {"retry-after": "0"})

    routed.fake.script = script
    await routed.rebuilt()
    assert await routed.found() == ("api", None, 10)
    statuses = [row["error_code"] for row in await routed.routing.attempts()]
    assert statuses.count("PROVIDER_RATE_LIMITED") == 2
    assert statuses.count("PROVIDER_UNAVAILABLE") == 1


async def test_a_provider_is_sent_several_requests_at_once(routed: Routed) -> None:
    for number in range(41):
        await routed.library.create(f"Note {number}", f"word {number}")
    await routed.routing.set(embedding=routed.routing.route(dimensions=DIMENSION))
    routed.fake.gate = asyncio.Event()
    building = asyncio.create_task(routed.rebuilt())

    async def four_wait() -> bool:
        return len(routed.fake.asked) == 4

    await eventually(four_wait)
    routed.fake.gate.set()
    await building
    sent = [len(asked.json["input"]) for asked in routed.fake.asked]
    assert sent == [10, 10, 10, 10, 1]


async def test_a_build_that_fails_leaves_the_old_index(routed: Routed) -> None:
    library = routed.library
    await library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    await routed.rebuilt()
    routed.fake.answer({}, 401)
    state = await library.rebuild()
    assert state["status"] == "failed"
    assert state["error_message"].startswith("PROVIDER_AUTH_FAILED: ")
    routed.fake.script = embeddings(DIMENSION)
    assert await routed.found() == ("api", None, 1)


async def test_without_a_local_model(routed: Routed) -> None:
    library = routed.library
    library.models.embedder = None
    await library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    assert await library.error() == "VECTOR_INDEX_REBUILD_REQUIRED"
    await routed.rebuilt()
    assert await routed.found() == ("api", None, 1)
    routed.fake.answer(fault="drop")
    assert await library.error() == "EMBEDDING_MODEL_UNAVAILABLE"


async def test_the_dimension_is_remembered_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeModels
) -> None:
    models = Models(HashEmbedder())
    monkeypatch.setattr("sidecar.services.LocalModelSource", lambda *_, **__: models)
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        routing = Routing(app, fake, await new_provider(app, fake.url))
        first = Routed(Library(app, app.vault, models), routing, fake)
        await first.library.create("Note", "a word of mine")
        await routing.set(embedding=routing.route())
        await first.rebuilt()
    asked = len(fake.asked)
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        again = Routed(Library(app, app.vault, models), Routing(app, fake, ""), fake)
        await again.library.at_rest()
        assert (await again.library.index())["embedding"]["dimension"] == DIMENSION
        assert await again.found() == ("api", None, 1)
    assert len(fake.asked) == asked + 1


async def test_a_search_that_is_given_up_closes_the_provider_s_request(routed: Routed) -> None:
    await routed.library.create("Note", "a word of mine")
    await routed.routing.set(embedding=routed.routing.route())
    await routed.rebuilt()
    routed.fake.came.clear()
    routed.fake.answer(fault="hang")
    body = {"query": "word", "mode": "vector"}
    search = asyncio.create_task(routed.routing.app.http.post("/api/search", json=body))
    await asyncio.wait_for(routed.fake.came.wait(), 10)
    search.cancel()
    await asyncio.wait_for(routed.fake.left.wait(), 10)

    async def is_written() -> bool:
        return (await routed.routing.attempts())[-1]["status"] == "cancelled"

    await eventually(is_written)
