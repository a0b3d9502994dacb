"""Model providers: their configurations, and the calls to their chat models."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from sidecar.kernel.clock import utc_now
from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.providers import store
from sidecar.providers.calls.attempts import UsageRecorder
from sidecar.providers.calls.chat import ModelCalls
from sidecar.providers.calls.retries import DEFAULT_POLICY, RetryPolicy
from sidecar.providers.calls.routed import ROUTABLE_TYPES, RoutedCalls, RoutedModel, SoundFile
from sidecar.providers.calls.streaming import StreamControl
from sidecar.providers.calls.transport import DEFAULT_TIMEOUTS, Timeouts, Transport
from sidecar.providers.checks import PROBE_SECONDS, ProviderChecks
from sidecar.providers.lookup import ProviderLookup, capabilities_of, invalid_field
from sidecar.providers.presets import PRESETS
from sidecar.providers.protocols.adapter import guessed_capabilities
from sidecar.providers.protocols.openai_models import TranscriptionAnswer
from sidecar.providers.schemas.model_call import (
    Capability,
    ChatTarget,
    ModelEvent,
    ModelReply,
    ModelRequest,
)
from sidecar.providers.schemas.wire import (
    ModelList,
    PresetList,
    Provider,
    ProviderCreateRequest,
    ProviderList,
    ProviderPatch,
)

__all__ = [
    "ROUTABLE_TYPES",
    "ProviderService",
    "RetryPolicy",
    "RoutedCalls",
    "RoutedModel",
    "SoundFile",
    "StreamControl",
    "TranscriptionAnswer",
]

InUse = Callable[[Readable, str], bool]


class ProviderService:
    """Keeps providers and calls their models."""

    def __init__(
        self,
        database: Database,
        credentials: CredentialStore,
        recorder: UsageRecorder,
        *,
        development: bool = False,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        retries: RetryPolicy = DEFAULT_POLICY,
        probe_seconds: float = PROBE_SECONDS,
    ) -> None:
        self._database = database
        self.transport = Transport(timeouts)
        self.lookup = ProviderLookup(database, credentials, development=development)
        self.calls = ModelCalls(self.lookup, self.transport, recorder, retries)
        self.checks = ProviderChecks(self.lookup, self.calls, recorder, probe_seconds=probe_seconds)
        self._in_use: list[InUse] = []

    def refuse_deletion_while(self, in_use: InUse) -> None:
        """Have *in_use* asked, inside the deletion's own transaction, whether a provider is still needed."""
        self._in_use.append(in_use)

    async def close(self) -> None:
        """End the streams that are open, each with its error and its end; then the connections."""
        await self.calls.close()
        await self.transport.close()

    async def list(self, query: PageQuery) -> ProviderList:
        """Return a page of providers, oldest first."""
        items, total = await self._database.read(lambda conn: store.page(conn, query))
        return ProviderList(items=list(await self._shown(items)), page=page_of(total, query))

    def presets(self) -> PresetList:
        """Return the vendors to choose from, described in the language of the request."""
        return PresetList(items=[preset.shown() for preset in PRESETS])

    async def get(self, provider_id: str) -> Provider:
        """Return a provider; raises ``RESOURCE_NOT_FOUND``."""
        return (await self._shown([await self.lookup.stored(provider_id)]))[0]

    async def create(self, request: ProviderCreateRequest) -> Provider:
        """Store a provider; raises ``CREDENTIAL_NAMESPACE_RESERVED`` and ``VALIDATION_ERROR``."""
        self.lookup.check(request)
        now = utc_now()
        provider = Provider(
            provider_id=new_id("provider"),
            credential_configured=False,
            created_at=now,
            updated_at=now,
            **dict(request),
        )
        await self._database.write(lambda tx: store.insert(tx, provider))
        return (await self._shown([provider]))[0]

    async def update(self, provider_id: str, request: ProviderPatch) -> Provider:
        """Change what was sent; raises as :meth:`create`, and ``RESOURCE_NOT_FOUND``."""
        changes = {name: getattr(request, name) for name in request.model_fields_set}
        for name, value in changes.items():
            if value is None and name not in ("credential_id", "default_model"):
                raise invalid_field(name, "This field can't be taken away.")

        def write(tx: Transaction) -> Provider:
            provider = store.get(tx, provider_id)
            if provider is None:
                raise ProjectError("RESOURCE_NOT_FOUND", details={"provider_id": provider_id})
            if not changes:
                return provider
            changed = provider.model_copy(update={**changes, "updated_at": utc_now()})
            self.lookup.check(changed)
            store.update(tx, changed)
            if (changed.provider_type, changed.base_url) != (
                provider.provider_type,
                provider.base_url,
            ):
                # Somebody else answers there, with models of its own.
                store.forget_models(tx, provider_id)
            return changed

        provider = await self._database.write(write)
        return (await self._shown([provider]))[0]

    async def delete(self, provider_id: str) -> None:
        """Delete a provider; raises ``RESOURCE_NOT_FOUND`` and ``PROVIDER_IN_USE``."""

        def write(tx: Transaction) -> None:
            if store.get(tx, provider_id) is None:
                raise ProjectError("RESOURCE_NOT_FOUND", details={"provider_id": provider_id})
            if any(in_use(tx, provider_id) for in_use in self._in_use):
                raise ProjectError("PROVIDER_IN_USE", details={"provider_id": provider_id})
            store.delete(tx, provider_id)

        await self._database.write(write)

    async def models(self, provider_id: str) -> ModelList:
        """Return the models that a provider lists now; raises the mapped code of a failure."""
        provider = await self.lookup.usable(provider_id)
        items = await self.calls.list_models(provider)
        await self._database.write(lambda tx: store.keep_models(tx, provider_id, items))
        return ModelList(items=items)

    async def target(
        self, provider_id: str, model: str | None, *, need: Capability = "chat"
    ) -> ChatTarget:
        """Return what a call goes to; *model* None takes the provider's default one.

        Raises ``RESOURCE_NOT_FOUND``, ``PROVIDER_DISABLED``, ``CREDENTIAL_NAMESPACE_RESERVED``,
        ``MODEL_NOT_FOUND`` if no model is named, and ``MODEL_CAPABILITY_MISMATCH`` if the provider or
        the model is known not to have *need*.
        """
        provider = await self.lookup.usable(provider_id)
        capabilities = capabilities_of(provider)
        chosen = model or provider.default_model
        about: dict[str, Any] = {"provider_id": provider_id, "capability": need}
        if need not in capabilities:
            raise ProjectError("MODEL_CAPABILITY_MISMATCH", details=about)
        if chosen is None:
            raise ProjectError("MODEL_NOT_FOUND", details={**about, "reason": "no_model_chosen"})
        listed = await self._database.read(lambda conn: store.model(conn, provider_id, chosen))
        told = listed.capabilities if listed else guessed_capabilities(chosen)
        if need == "chat" and "chat" not in told:
            raise ProjectError("MODEL_CAPABILITY_MISMATCH", details={**about, "model": chosen})
        return ChatTarget(
            provider_id=provider_id,
            provider_name=provider.name,
            model=chosen,
            capabilities=capabilities,
            context_window=listed.context_window if listed else None,
            max_output_tokens=listed.max_output_tokens if listed else None,
        )

    def stream(
        self, target: ChatTarget, request: ModelRequest, *, control: StreamControl | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        """Call a model and yield its events as they come; the last one is always a single ``Done``.

        Whatever fails is told by an ``Error`` before it. Closing the generator, or cancelling the task
        that follows it, closes the connection to the provider at once. *control* ends the stream from
        elsewhere while it is still followed.
        """
        return self.calls.stream(target, request, control)

    async def complete(self, target: ChatTarget, request: ModelRequest) -> ModelReply:
        """Call a model and return its whole answer, its thinking included; raises :class:`ProjectError`."""
        return await self.calls.complete(target, request)

    async def _shown(self, providers: Sequence[Provider]) -> tuple[Provider, ...]:
        configured = await self.lookup.configured(item.credential_id for item in providers)
        return tuple(
            item.model_copy(update={"credential_configured": item.credential_id in configured})
            for item in providers
        )
