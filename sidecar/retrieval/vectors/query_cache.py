"""Remembers the vectors of the last queries, for as long as the process lives."""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal

from sidecar.retrieval.embedding import Embedder, VectorSpace, checked

if TYPE_CHECKING:
    from sidecar.retrieval.embedding import Vectors

CACHED_QUERIES: Final = 256

CacheResult = Literal["hit", "miss"]


class QueryCache:
    """Vectors by model and query; the one that was used longest ago goes first."""

    def __init__(self, limit: int = CACHED_QUERIES) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[VectorSpace, str], Vectors] = OrderedDict()

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return len(self._known)

    async def embed(self, embedder: Embedder, query: str) -> tuple["Vectors", CacheResult | None]:
        """Return the vector of *query*, and whether it was known; only local models are cached."""
        space = embedder.space
        key = (space, query)
        if space.source == "local" and key in self._known:
            self._known.move_to_end(key)
            return self._known[key], "hit"
        vector = checked(space, await embedder.embed_queries([query]), 1)[0]
        if space.source != "local":
            return vector, None
        self._known[key] = vector
        while len(self._known) > self._limit:
            self._known.popitem(last=False)
        return vector, "miss"
