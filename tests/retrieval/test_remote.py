"""A route to a remote embedding model: an index of its own, and the local one when it fails."""

from dataclasses import replace

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.retrieval.embedding import VectorSpace
from tests.fakes.embedders import HashEmbedder
from tests.retrieval.conftest import Library

REMOTE = VectorSpace("remote-large", "1", 48, "l2", "api", "provider_1 /embeddings")


async def prepared(library: Library) -> HashEmbedder:
    """Fill the vault, build the local index, then set a route; returns the remote model."""
    await library.create("Note", "word")
    await library.rebuild()
    library.models.routed = HashEmbedder(REMOTE)
    return library.models.routed


async def answered_by(library: Library, query: str = "word") -> tuple[str, str | None]:
    """Return the source of the model that answers and why it is not the other."""
    (hit, *_) = await library.search(query)
    embedding = hit["provenance"]["embedding"]
    return embedding["source"], embedding["fallback_reason"]


@pytest.mark.proves(
    "retrieval.spaces.remote-own-index",
    "retrieval.spaces.fallback-reason",
    "retrieval.spaces.remote-fallback",
    "retrieval.index-status.route",
    "retrieval.spaces.unset-route",
)
async def test_a_route_has_an_index_of_its_own(library: Library) -> None:
    remote = await prepared(library)
    assert await answered_by(library) == ("local", "VECTOR_INDEX_REBUILD_REQUIRED")
    assert remote.queries == []
    state = await library.index()
    assert state["embedding"] == {
        "model_id": "remote-large", "model_version": "1", "dimension": 48, "normalization": "l2", "source": "api",
    }  # fmt: skip
    assert state["vector_index"] is None
    state = await library.rebuild()
    assert state["vector_index"] == {**state["embedding"], "compatible": True}
    assert await answered_by(library) == ("api", None)
    # Both are kept whole, and the local one serves again without a rebuild.
    await library.create("Second", "word too")
    await library.at_rest()
    assert await answered_by(library) == ("api", None)
    library.models.routed = None
    assert await answered_by(library) == ("local", None)
    assert len(await library.search("word")) == 2
    assert (await library.index())["vector_index"]["source"] == "local"


@pytest.mark.proves("retrieval.spaces.remote-fallback", "retrieval.spaces.fallback-reason")
@pytest.mark.parametrize("code", ["PROVIDER_TIMEOUT", "EMBEDDING_DIMENSION_MISMATCH"])
async def test_a_route_that_fails(library: Library, code: str) -> None:
    remote = await prepared(library)
    await library.rebuild()
    if code == "PROVIDER_TIMEOUT":
        remote.error = ProjectError(code)
    else:
        remote.real_dimension = 47
    assert await answered_by(library) == ("local", code)
    (hit, *_) = await library.search("word", "hybrid")
    assert hit["provenance"]["embedding"]["model_id"] == "hash"
    assert hit["provenance"]["embedding"]["fallback_reason"] == code


@pytest.mark.proves("retrieval.spaces.remote-changed")
@pytest.mark.parametrize(
    "change",
    [
        {"model_id": "other"},
        {"dimension": 32},
        {"route": "provider_1 /v2"},
        {"route": "provider_2 /embeddings"},
    ],
)
async def test_a_route_that_was_changed(library: Library, change: dict[str, object]) -> None:
    await prepared(library)
    await library.rebuild()
    changed = HashEmbedder(replace(REMOTE, **change))  # type: ignore[arg-type]
    library.models.routed = changed
    assert await answered_by(library) == ("local", "VECTOR_INDEX_REBUILD_REQUIRED")
    assert changed.queries == []
    assert (await library.index())["vector_index"]["compatible"] is False
    await library.rebuild()
    assert await answered_by(library) == ("api", None)


@pytest.mark.proves("retrieval.spaces.remote-coverage")
async def test_an_index_that_lacks_a_block_is_not_used(library: Library) -> None:
    remote = await prepared(library)
    await library.rebuild()
    remote.error = ProjectError("PROVIDER_TIMEOUT")
    await library.create("Second", "word too")
    await library.at_rest()
    # The model isn't asked, or its failure would be the reason.
    assert await answered_by(library) == ("local", "VECTOR_INDEX_REBUILD_REQUIRED")
    remote.error = None
    await library.rebuild()
    assert await answered_by(library) == ("api", None)


@pytest.mark.proves("retrieval.errors.rebuild-required", "retrieval.errors.model-unavailable")
async def test_without_a_local_model(library: Library) -> None:
    remote = await prepared(library)
    library.models.embedder = None
    assert await library.error() == "VECTOR_INDEX_REBUILD_REQUIRED"
    await library.rebuild()
    assert await answered_by(library) == ("api", None)
    remote.error = ProjectError("PROVIDER_TIMEOUT")
    assert await library.error() == "EMBEDDING_MODEL_UNAVAILABLE"
    assert len(await library.found("word")) == 1
