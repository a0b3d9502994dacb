"""The vector leg of a search: which model answers, and what it finds."""

import asyncio
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.local_models.service import Attempt, AttemptLog
from sidecar.retrieval import search_store
from sidecar.retrieval.embedding import Embedder, ModelSource
from sidecar.retrieval.fusion import Ranked
from sidecar.retrieval.schemas import QueryEmbedding
from sidecar.retrieval.search_store import SearchFilter
from sidecar.retrieval.vectors.index import VectorIndex
from sidecar.retrieval.vectors.query_cache import CacheResult, QueryCache
from sidecar.retrieval.vectors.sets import VectorSets

# Blocks that have gone since are still found in the file; so many more are asked for.
SPARE_HITS: Final = 32


@dataclass(frozen=True, slots=True)
class VectorHits:
    """What the vectors found, and with which model."""

    ranked: Ranked
    embedding: QueryEmbedding
    cache: CacheResult | None


class VectorLeg:
    """Finds blocks by their meaning."""

    def __init__(
        self,
        database: Database,
        models: ModelSource,
        index: VectorIndex,
        sets: VectorSets,
        cache: QueryCache,
    ) -> None:
        self._database = database
        self._attempts = AttemptLog(database)
        self._models = models
        self._index = index
        self._sets = sets
        self._cache = cache

    async def find(self, query: str, wanted: SearchFilter, limit: int) -> VectorHits:
        """Return the nearest blocks.

        The route's model answers if one is set and can be used, else the local one, and the hits
        tell why. Raises ``EMBEDDING_MODEL_UNAVAILABLE``, ``INDEX_MODEL_MISMATCH``,
        ``VECTOR_INDEX_REBUILD_REQUIRED`` or ``EMBEDDING_DIMENSION_MISMATCH``.
        """
        remote, local = await self._models.remote(), await self._models.local()
        if remote is None:
            if local is None:
                raise ProjectError("EMBEDDING_MODEL_UNAVAILABLE")
            return await self._find_with(local, query, wanted, limit, None)
        try:
            return await self._find_with(remote, query, wanted, limit, None)
        except ProjectError as error:
            reason = error
        if local is None:
            code = reason.code
            is_ours = code == "VECTOR_INDEX_REBUILD_REQUIRED"
            raise reason if is_ours else ProjectError("EMBEDDING_MODEL_UNAVAILABLE")
        try:
            hits = await self._find_with(local, query, wanted, limit, reason.code)
        except ProjectError as error:
            if reason.code == "VECTOR_INDEX_REBUILD_REQUIRED":
                raise reason from error
            raise
        if reason.code != "VECTOR_INDEX_REBUILD_REQUIRED":
            model = local.space.model_id
            self._attempts.submit(
                Attempt("fallback", "embedding", "completed", model, fallback_reason=reason.code)
            )
        return hits

    async def _find_with(
        self,
        embedder: Embedder,
        query: str,
        wanted: SearchFilter,
        limit: int,
        fallback_reason: str | None,
    ) -> VectorHits:
        made = await self._index.usable_set(embedder)
        vector, cache = await self._cache.embed(embedder, query)
        file = await self._sets.file_of(made)
        allowed = await self._database.read(lambda conn: search_store.numbers_allowed(conn, wanted))
        asked = limit + SPARE_HITS
        while True:
            found = await asyncio.to_thread(file.search, vector, asked, allowed)
            alive = await self._alive([number for number, _ in found])
            ranked = [(number, score) for number, score in found if number in alive]
            if len(ranked) >= limit or len(found) < asked:
                break
            asked *= 4
        space = embedder.space
        return VectorHits(
            ranked[:limit],
            QueryEmbedding(
                source=space.source,
                model_id=space.model_id,
                model_version=space.model_version,
                dimension=space.dimension,
                fallback_reason=fallback_reason,
            ),
            cache,
        )

    async def _alive(self, numbers: list[int]) -> set[int]:
        return await self._database.read(lambda conn: search_store.existing(conn, numbers))
