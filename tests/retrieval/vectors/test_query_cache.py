"""The memory of query vectors."""

from dataclasses import replace

import pytest

from sidecar.retrieval.vectors.query_cache import CACHED_QUERIES, QueryCache
from tests.fakes.embedders import SPACE, HashEmbedder


@pytest.mark.proves("retrieval.query-cache.bounded")
async def test_the_oldest_go_first() -> None:
    cache, embedder = QueryCache(limit=3), HashEmbedder()
    for query in ("a", "b", "c", "a", "d"):
        await cache.embed(embedder, query)
    assert [(await cache.embed(embedder, query))[1] for query in ("a", "c", "d")] == ["hit"] * 3
    assert (await cache.embed(embedder, "b"))[1] == "miss"
    full = QueryCache()
    for number in range(3 * CACHED_QUERIES):
        await full.embed(embedder, f"query {number}")
    assert len(full) == CACHED_QUERIES


@pytest.mark.proves("retrieval.query-cache.per-model")
async def test_each_model_has_its_own() -> None:
    cache = QueryCache()
    await cache.embed(HashEmbedder(), "word")
    for space in (replace(SPACE, model_id="b"), replace(SPACE, model_version="2")):
        assert (await cache.embed(HashEmbedder(space), "word"))[1] == "miss"
    assert (await cache.embed(HashEmbedder(), "word"))[1] == "hit"


@pytest.mark.proves("retrieval.query-cache.single-local-query")
async def test_remote_vectors_are_not_kept() -> None:
    cache, embedder = QueryCache(), HashEmbedder(replace(SPACE, source="api"))
    for _ in range(2):
        assert (await cache.embed(embedder, "word"))[1] is None
    assert (len(cache), len(embedder.queries)) == (0, 2)
