"""The adapter of each type of provider."""

from typing import Final

from sidecar.providers.adapter import Adapter
from sidecar.providers.anthropic import Anthropic
from sidecar.providers.ollama import Ollama
from sidecar.providers.openai_chat import OpenAiChat
from sidecar.providers.openai_responses import OpenAiResponses
from sidecar.providers.schemas.wire import ProviderType

ADAPTERS: Final[dict[ProviderType, Adapter]] = {
    "openai_responses": OpenAiResponses(),
    "openai_chat": OpenAiChat(),
    "openai_compatible": OpenAiChat(),
    "anthropic": Anthropic(),
    "ollama": Ollama(),
}
