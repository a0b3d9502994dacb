"""The adapter of each type of provider."""

from typing import Final

from sidecar.providers.adapter import Adapter
from sidecar.providers.openai_chat import OpenAiChat
from sidecar.providers.schemas import ProviderType

ADAPTERS: Final[dict[ProviderType, Adapter]] = {
    "openai_chat": OpenAiChat(),
    "openai_compatible": OpenAiChat(),
}
