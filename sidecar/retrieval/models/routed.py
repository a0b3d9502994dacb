"""The embedding models of search where a provider may do it: the route's, and the local one beside it."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.model_routing.service import EmbeddingTarget, LocalEmbedding, ModelRoutingService
from sidecar.retrieval import store
from sidecar.retrieval.embedding import Embedder, ModelSource, Reranker, VectorSpace, checked

if TYPE_CHECKING:
    from sidecar.retrieval.embedding import Vectors

# Somebody waits for the hits, and the local model can find them too: a provider that has kept a
# search waiting for so long isn't waited for again for a while.
QUERY_SECONDS: Final = 10.0
SPARED_SECONDS: Final = 30.0
_LOCAL_AT_ONCE: Final = 16
_DIMENSIONS_STATE: Final = "remote_dimensions"


class _Spared:
    """Routes that were too slow for a search, and until when no search waits for them."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def check(self, identity: str) -> None:
        """Raise ``PROVIDER_TIMEOUT`` for a route that is spared."""
        if time.monotonic() < self._until.get(identity, 0.0):
            raise ProjectError("PROVIDER_TIMEOUT")

    def add(self, identity: str) -> None:
        """Spare a route from now on."""
        self._until[identity] = time.monotonic() + SPARED_SECONDS


class RemoteEmbedder:
    """The model of the embedding route.

    A route may leave the dimension to the model. Then it is 0 until the first answer tells it, which
    is remembered from then on.
    """

    def __init__(
        self,
        routing: ModelRoutingService,
        target: EmbeddingTarget,
        dimension: int,
        learned: Callable[[int], Awaitable[None]],
        spared: _Spared,
    ) -> None:
        self._routing = routing
        self._route = target.route
        self._learned = learned
        self._spared = spared
        # No provider tells the version of its models; another route is another version.
        self._space = VectorSpace(
            target.route.model, target.identity, dimension, "l2", "api", target.identity
        )

    @property
    def space(self) -> VectorSpace:
        """The space of its vectors."""
        return self._space

    async def embed_queries(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors of what is looked for; raises the provider's failure.

        After a ``PROVIDER_TIMEOUT`` that is the answer for a while, and the provider isn't asked.
        """
        self._spared.check(self._space.route)
        try:
            vectors = await self._routing.embed(self._route, texts, seconds=QUERY_SECONDS)
        except ProjectError as error:
            if error.code == "PROVIDER_TIMEOUT":
                self._spared.add(self._space.route)
            raise
        return await self._taken(vectors)

    async def embed_passages(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors of what is found; waits out a rate limit, and raises other failures."""
        return await self._taken(await self._routing.embed(self._route, texts, patient=True))

    async def _taken(self, vectors: list[list[float]]) -> "Vectors":
        import numpy as np  # noqa: PLC0415 - heavy

        if self._space.dimension == 0:
            dimension = len(vectors[0])
            await self._learned(dimension)
            self._space = replace(self._space, dimension=dimension)
        return np.asarray(vectors, dtype=np.float32)


class RoutedModelSource:
    """What *local* knows, and the route's model."""

    def __init__(
        self, local: ModelSource, routing: ModelRoutingService, database: Database
    ) -> None:
        self._local = local
        self._routing = routing
        self._database = database
        self._spared = _Spared()

    async def local(self) -> Embedder | None:
        """Return the installed embedding model, if there is one."""
        return await self._local.local()

    async def reranker(self) -> Reranker | None:
        """Return the installed reranker, if there is one."""
        return await self._local.reranker()

    async def remote(self) -> Embedder | None:
        """Return the model of the embedding route, if one is set; the provider isn't asked for it."""
        target = await self._routing.embedding_target()
        if target is None:
            return None
        dimension = target.route.dimensions
        if dimension is None:
            known = await self._database.read(_dimensions)
            dimension = known.get(target.identity, 0)

        async def learned(found: int) -> None:
            def write(tx: Transaction) -> None:
                store.put_state(tx, _DIMENSIONS_STATE, {**_dimensions(tx), target.identity: found})

            await self._database.write(write)

        return RemoteEmbedder(self._routing, target, dimension, learned, self._spared)


def _dimensions(conn: Readable) -> dict[str, int]:
    """Return the dimensions that models have told, by the route's identity."""
    found: dict[str, int] = store.get_state(conn, _DIMENSIONS_STATE) or {}
    return found


async def local_embedding(models: ModelSource) -> LocalEmbedding | None:
    """Return the installed embedding model for callers that know no vectors but lists of numbers."""
    embedder = await models.local()
    if embedder is None:
        return None

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for at in range(0, len(texts), _LOCAL_AT_ONCE):
            part = texts[at : at + _LOCAL_AT_ONCE]
            vectors += checked(
                embedder.space, await embedder.embed_passages(part), len(part)
            ).tolist()
        return vectors

    return LocalEmbedding(embedder.space.model_id, embed)
