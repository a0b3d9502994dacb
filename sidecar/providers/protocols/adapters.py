"""The adapter of each type of provider."""

from typing import Final

from sidecar.providers.protocols.adapter import Adapter
from sidecar.providers.protocols.anthropic import Anthropic
from sidecar.providers.protocols.ollama import Ollama
from sidecar.providers.protocols.openai_chat import OpenAiChat
from sidecar.providers.protocols.openai_responses import OpenAiResponses
from sidecar.providers.schemas.wire import ProviderType

ADAPTERS: Final[dict[ProviderType, Adapter]] = {
    "openai_responses": OpenAiResponses(),
    "openai_chat": OpenAiChat(),
    "openai_compatible": OpenAiChat(),
    "anthropic": Anthropic(),
    "ollama": Ollama(),
}
