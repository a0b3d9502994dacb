"""Finds providers and what reaches them: key, proxy, protocol."""

import asyncio
from collections.abc import Iterable
from typing import Any

from sidecar.kernel.credentials import CredentialStore, check_public_id
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.network_settings import read_network
from sidecar.providers import store
from sidecar.providers.calls.transport import Upstream
from sidecar.providers.failures import UpstreamError
from sidecar.providers.presets import preset_capabilities
from sidecar.providers.schemas.model_call import Capability
from sidecar.providers.schemas.wire import Provider, ProviderCreateRequest

Configuration = Provider | ProviderCreateRequest


class ProviderLookup:
    """Reads stored providers and resolves what a configuration names."""

    def __init__(
        self, database: Database, credentials: CredentialStore, *, development: bool
    ) -> None:
        self._database = database
        self._credentials = credentials
        self._development = development

    async def stored(self, provider_id: str) -> Provider:
        """Return a provider; raises ``RESOURCE_NOT_FOUND``."""
        provider = await self._database.read(lambda conn: store.get(conn, provider_id))
        if provider is None:
            raise ProjectError("RESOURCE_NOT_FOUND", details={"provider_id": provider_id})
        return provider

    async def usable(self, provider_id: str) -> Provider:
        """Return a provider that may be called.

        Raises ``RESOURCE_NOT_FOUND``, ``PROVIDER_DISABLED``, ``CREDENTIAL_NAMESPACE_RESERVED``, and
        ``VALIDATION_ERROR`` for the mock outside development.
        """
        provider = await self.stored(provider_id)
        self.check(provider)
        if not provider.enabled:
            raise ProjectError("PROVIDER_DISABLED", details={"provider_id": provider_id})
        return provider

    def check(self, configuration: Configuration) -> None:
        """Refuse a configuration that names a reserved secret, or the mock outside development."""
        if configuration.provider_type == "mock" and not self._development:
            raise invalid_field("provider_type", "The mock exists in development only.")
        if configuration.credential_id is None:
            return
        try:
            check_public_id(configuration.credential_id)
        except ProjectError as error:
            if error.code == "CREDENTIAL_NAMESPACE_RESERVED":
                raise
            raise invalid_field("credential_id", "Not the id of a credential.") from None

    async def configured(self, credential_ids: Iterable[str | None]) -> set[str]:
        """Return those ids under which a secret is kept."""
        wanted = {found for found in credential_ids if found}

        async def is_kept(credential_id: str) -> bool:
            try:
                check_public_id(credential_id)
                return await self._credentials.get(credential_id) is not None
            except ProjectError:
                # A store that can't be read has nothing to offer; calls say what is wrong with it.
                return False

        kept = await asyncio.gather(*map(is_kept, wanted))
        return {found for found, there in zip(wanted, kept, strict=True) if there}

    async def upstream(self, configuration: Configuration, model: str | None = None) -> Upstream:
        """Return where and with which key a provider is asked.

        Raises ``PROVIDER_AUTH_FAILED`` if its secret is missing; nothing has left the machine then.
        """
        from sidecar.providers.protocols.adapters import ADAPTERS  # noqa: PLC0415 - not needed before ready

        self.check(configuration)
        about: dict[str, Any] = {}
        if isinstance(configuration, Provider):
            about["provider_id"] = configuration.provider_id
        if model is not None:
            about["model"] = model
        secret = None
        if configuration.credential_id is not None:
            secret = await self._credentials.get(configuration.credential_id)
            if secret is None:
                raise UpstreamError("PROVIDER_AUTH_FAILED", {**about, "reason": "no_credential"})
        headers = ADAPTERS[configuration.provider_type].headers(secret)
        network = await self._database.read(read_network)
        return Upstream(configuration.base_url, headers, about, network)


def capabilities_of(configuration: Configuration) -> frozenset[Capability]:
    """Return what a provider is for: as configured, as its preset says, or chat alone."""
    if configuration.capabilities:
        return frozenset(configuration.capabilities)
    return preset_capabilities(configuration.provider_type, configuration.base_url)


def invalid_field(name: str, reason: str) -> ProjectError:
    """Return the error for a field of a body that can't be as it is."""
    error = {"loc": ["body", name], "message": reason}
    return ProjectError("VALIDATION_ERROR", details={"errors": [error]})
