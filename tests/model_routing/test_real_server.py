"""Vectors of a real model that a real llama.cpp serves."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app_client import running_app
from tests.fakes.embedders import HashEmbedder, Models
from tests.fakes.openai_models import FakeModels
from tests.model_routing.conftest import Routing, new_provider
from tests.providers.real_server import needs_real_server, real_server
from tests.retrieval.conftest import Library

pytestmark = needs_real_server
DIMENSION = 576


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_server(tmp_path_factory.mktemp("llama"), embeddings=True) as url:
        yield url


@pytest.mark.proves("providers.embeddings.vectors", "retrieval.spaces.remote-own-index")
async def test_a_vault_is_searched_with_its_vectors(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models(HashEmbedder())
    monkeypatch.setattr("sidecar.services.LocalModelSource", lambda *_, **__: models)
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        library = Library(app, app.vault, models)
        routing = Routing(app, FakeModels(), await new_provider(app, server))
        for number in range(12):
            await library.create(f"Note {number}", f"The train to city {number} leaves at noon.")
        await library.create("Kitchen", "Boil the eggs for eight minutes and cool them in water.")
        await routing.set(embedding=routing.route())
        state = await library.rebuild()
        assert state["status"] == "idle", state
        assert state["embedding"]["dimension"] == DIMENSION
        hits = await library.search("Boil the eggs for eight minutes", limit=3)
        assert hits[0]["title"] == "Kitchen"
        assert hits[0]["provenance"]["embedding"]["source"] == "api"
        attempts = await routing.attempts()
        assert {row["status"] for row in attempts} == {"completed"}
        assert all(row["input_tokens"] == row["total_tokens"] > 0 for row in attempts)

        texts = ["first text", "second text", "first text"]
        answer = await app.http.post("/api/models/embeddings", json={"texts": texts})
        found = answer.json()
        assert (found["source"], found["dimensions"]) == ("api", DIMENSION)
        first, second, again = found["vectors"]
        assert math.dist(first, again) < 1e-3 < math.dist(first, second)

        # It knows nothing of `dimensions` and answers with its own: such vectors are not taken.
        await routing.set(embedding=routing.route(dimensions=64))
        answer = await app.http.post("/api/models/embeddings", json={"texts": texts})
        found = answer.json()
        assert (found["source"], found["fallback_reason"]) == (
            "local",
            "EMBEDDING_DIMENSION_MISMATCH",
        )
