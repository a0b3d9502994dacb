"""Who does what besides chat: the routes, and the calls that follow them.

A route is asked first. What its provider can't do the local model does, and the answer says why; the
domains that own the local models make that step, with :meth:`ModelRoutingService.route` and the calls
here.
"""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.local_models.service import Attempt as LocalAttempt
from sidecar.local_models.service import AttemptLog
from sidecar.model_routing import store
from sidecar.model_routing.schemas import (
    CAPABILITIES,
    EmbeddingRoute,
    Embeddings,
    LocalBackend,
    LocalBackends,
    ModelRouting,
    ModelRoutingConfig,
    Route,
    RoutedCapability,
)
from sidecar.providers.service import (
    ROUTABLE_TYPES,
    ProviderService,
    RetryPolicy,
    RoutedCalls,
    RoutedModel,
    SoundFile,
    TranscriptionAnswer,
)
from sidecar.usage.service import LOCAL_PROVIDER, UsageLedger

__all__ = [
    "EmbeddingTarget",
    "LocalEmbedding",
    "ModelRoutingService",
    "SoundFile",
    "TranscriptionAnswer",
]

log = get_logger(__name__)

# Some vendors take no more texts in one request (DashScope: 10).
TEXTS_AT_ONCE: Final = 10
REQUESTS_AT_ONCE: Final = 4
EMBEDDING_SECONDS: Final = 60.0
# An index is built in the background: it can wait out a rate limit.
PATIENT: Final = RetryPolicy(repeats=4, first_wait=1.0, longest_wait=30.0)


@dataclass(frozen=True, slots=True)
class EmbeddingTarget:
    """The embedding route as it is now.

    ``identity`` is the same for the same model at the same place and another for every other: vectors
    of two identities must not be compared. ``version`` is the configuration's with which it came.
    """

    route: EmbeddingRoute
    identity: str
    version: int


@dataclass(frozen=True, slots=True)
class LocalEmbedding:
    """The installed embedding model: its name, and what turns texts into vectors."""

    model_id: str
    embed: Callable[[Sequence[str]], Awaitable[list[list[float]]]]


LocalModelId = Callable[[], Awaitable[str | None]]
"""Returns the name of the local model that would be used, None if none is installed."""


class ModelRoutingService:
    """Keeps the routes and follows them."""

    def __init__(
        self,
        database: Database,
        providers: ProviderService,
        calls: RoutedCalls,
        ledger: UsageLedger,
        *,
        local_models: Mapping[RoutedCapability, LocalModelId],
        local_embedding: Callable[[], Awaitable[LocalEmbedding | None]],
    ) -> None:
        self._database = database
        self._providers = providers
        self._calls = calls
        self._ledger = ledger
        self._attempts = AttemptLog(database)
        self._local_models = local_models
        self._local_embedding = local_embedding
        self._changed: list[Callable[[], None]] = []
        providers.refuse_deletion_while(store.leads_to)

    # -- the configuration -----------------------------------------------------------------------

    async def read(self) -> ModelRouting:
        """Return the routes, and which local models there are."""
        stored = await self._database.read(store.get)
        names = await asyncio.gather(*(self._local_models[name]() for name in CAPABILITIES))
        backends = {
            capability: LocalBackend(installed=name is not None, model_id=name)
            for capability, name in zip(CAPABILITIES, names, strict=True)
        }
        return ModelRouting(config=stored.config, local_backends=LocalBackends(**backends))

    async def replace(self, config: ModelRoutingConfig) -> ModelRoutingConfig:
        """Store a whole configuration that was made from the current version; returns it with the next.

        Raises ``MODEL_ROUTING_VERSION_CONFLICT``, ``RESOURCE_NOT_FOUND`` for an unknown provider and
        ``MODEL_CAPABILITY_MISMATCH`` for one whose protocol has no such calls.
        """
        for capability, route in config.routes().items():
            await self._check_provider(capability, route)

        def write(tx: Transaction) -> ModelRoutingConfig:
            current = store.get(tx).config.version
            if config.version != current:
                raise ProjectError("MODEL_ROUTING_VERSION_CONFLICT", details={"version": current})
            updated = config.model_copy(update={"version": current + 1})
            store.put(tx, updated)
            tx.after_commit(self._tell)
            return updated

        try:
            return await self._database.write(write)
        except sqlite3.IntegrityError as error:
            # A provider was deleted just now.
            raise ProjectError("RESOURCE_NOT_FOUND") from error

    async def is_routed(self, capability: RoutedCapability) -> bool:
        """Whether a provider is asked first."""
        stored = await self._database.read(store.get)
        return capability in stored.config.routes()

    async def _check_provider(self, capability: RoutedCapability, route: Route) -> None:
        details = {"capability": capability, "provider_id": route.provider_id}
        try:
            provider = await self._providers.lookup.stored(route.provider_id)
        except ProjectError as error:
            raise ProjectError(error.code, details=details) from error
        if provider.provider_type not in ROUTABLE_TYPES:
            raise ProjectError("MODEL_CAPABILITY_MISMATCH", details=details)

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call *changed* whenever the configuration has changed."""
        self._changed.append(changed)

    def _tell(self) -> None:
        for changed in self._changed:
            changed()

    # -- embedding -------------------------------------------------------------------------------

    async def embedding_target(self) -> EmbeddingTarget | None:
        """Return the embedding route, None if none is set."""
        stored = await self._database.read(store.get)
        route = stored.config.embedding
        if route is None:
            return None
        provider = await self._providers.lookup.stored(route.provider_id)
        facts = [
            provider.provider_id,
            provider.base_url,
            route.endpoint,
            route.model,
            route.dimensions,
        ]
        identity = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        return EmbeddingTarget(route, identity, stored.route_versions["embedding"])

    async def embed(
        self,
        route: EmbeddingRoute,
        texts: Sequence[str],
        *,
        source: str = "embedding",
        seconds: float = EMBEDDING_SECONDS,
        patient: bool = False,
    ) -> list[list[float]]:
        """Return the provider's vectors, all of one length, in the order of *texts*.

        *seconds* is the limit of each request; *patient* waits out refusals such as a rate limit.
        Raises the provider's failure; then there are no vectors at all.
        """
        routed = _routed(route)
        turns = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def some(part: Sequence[str]) -> list[list[float]]:
            async with turns:
                return await self._calls.embed(
                    routed,
                    part,
                    route.dimensions,
                    source=source,
                    seconds=seconds,
                    retries=PATIENT if patient else None,
                )

        parts = [texts[at : at + TEXTS_AT_ONCE] for at in range(0, len(texts), TEXTS_AT_ONCE)]
        requests = [asyncio.ensure_future(some(part)) for part in parts]
        try:
            answers = await asyncio.gather(*requests)
        finally:
            # One failure or cancel makes the others worthless.
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
        vectors = [vector for answer in answers for vector in answer]
        if len({len(vector) for vector in vectors}) != 1:
            raise ProjectError("PROVIDER_INVALID_RESPONSE", details={"reason": "dimensions"})
        return vectors

    async def embeddings(self, texts: Sequence[str]) -> Embeddings:
        """Return vectors of the route's model, or of the local one if that fails or none is set.

        Raises ``LOCAL_MODEL_NOT_INSTALLED`` and ``EMBEDDING_MODEL_UNAVAILABLE``, with
        ``details.fallback_reason`` if a provider failed before.
        """
        target = await self.embedding_target()
        reason = None
        if target is not None:
            try:
                vectors = await self.embed(target.route, texts)
            except ProjectError as error:
                reason = error.code
                log.warning("routing.fell_back", extra={"reason": reason})
            else:
                return _embeddings(vectors, "api", target.route.model, None)
        try:
            found = await self._embedded_locally(texts, reason)
        except ProjectError:
            self._note_fallback(reason, "failed", None)
            raise
        self._note_fallback(reason, "completed", found.model_id)
        return found

    def _note_fallback(self, reason: str | None, status: str, model_id: str | None) -> None:
        if reason is not None:
            self._attempts.submit(
                LocalAttempt("fallback", "embedding", status, model_id, fallback_reason=reason)
            )

    async def _embedded_locally(self, texts: Sequence[str], reason: str | None) -> Embeddings:
        local = await self._local_embedding()
        because = {"fallback_reason": reason} if reason else {}
        if local is None:
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED", details=because)
        try:
            async with self._ledger.attempt(
                source="embedding",
                capability="embedding",
                provider_id=LOCAL_PROVIDER,
                provider_name=None,
                model=local.model_id,
            ):
                vectors = await local.embed(texts)
        except ProjectError as error:
            raise ProjectError(
                error.code, details=error.details | because, **error.params
            ) from error
        return _embeddings(vectors, "local", local.model_id, reason)

    # -- sound -----------------------------------------------------------------------------------

    async def transcribe(
        self, recording: SoundFile, language: str | None
    ) -> TranscriptionAnswer | None:
        """Return the provider's transcript, None if no route is set; raises the provider's failure."""
        route = (await self._database.read(store.get)).config.transcription
        if route is None:
            return None
        return await self._calls.transcribe(
            _routed(route), recording, language, source="transcription"
        )

    async def match_speakers(self, recording: SoundFile, reference: SoundFile) -> float | None:
        """Return the provider's score, None if no route is set; raises the provider's failure."""
        route = (await self._database.read(store.get)).config.speaker_matching
        if route is None:
            return None
        return await self._calls.match(
            _routed(route), recording, reference, source="speaker_matching"
        )


def _routed(route: Route) -> RoutedModel:
    assert route.endpoint is not None, "the configuration fills in the usual one"
    return RoutedModel(route.provider_id, route.model, route.endpoint)


def _embeddings(
    vectors: list[list[float]], source: str, model_id: str, reason: str | None
) -> Embeddings:
    return Embeddings.model_validate(
        {
            "vectors": vectors,
            "source": source,
            "model_id": model_id,
            "dimensions": len(vectors[0]),
            "fallback_reason": reason,
        }
    )
