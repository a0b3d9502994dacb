"""Vendors that a user can choose from a list. Addresses and abilities are those that each documents.

What a vendor's models can do differs by model; a preset tells what its current chat models share. Servers
on one's own machine run any model, so nothing but chat is claimed for them.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.kernel.catalogue import text
from sidecar.providers.schemas.model_call import Capability
from sidecar.providers.schemas.wire import Preset, ProviderType

_CHAT: Final[tuple[Capability, ...]] = ("chat", "streaming")
_TOOLS: Final[tuple[Capability, ...]] = (*_CHAT, "tool_calling")
_THINKING: Final[tuple[Capability, ...]] = (*_TOOLS, "reasoning")
_SEEING: Final[tuple[Capability, ...]] = (*_THINKING, "vision")


@dataclass(frozen=True, slots=True)
class VendorPreset:
    """One entry of the list; its description is in the catalogue under its id."""

    preset_id: str
    name: str
    provider_type: ProviderType
    base_url: str
    capabilities: tuple[Capability, ...]
    key_address: str | None
    """Where a key is made; None if none is needed."""
    logo_id: str = ""

    def shown(self) -> Preset:
        """Return the entry as the API shows it, in the language of the request."""
        return Preset(
            preset_id=self.preset_id,
            name=self.name,
            provider_type=self.provider_type,
            base_url=self.base_url,
            logo_id=self.logo_id or self.preset_id,
            description=text(f"provider.preset.{self.preset_id}"),
            capabilities=list(self.capabilities),
            needs_credential=self.key_address is not None,
            credential_hint=self._key_hint(),
        )

    def _key_hint(self) -> str:
        if self.preset_id == "custom":
            return text("provider.key_hint.custom")
        if self.key_address is None:
            return text("provider.key_hint.none")
        return text("provider.key_hint", address=self.key_address)


PRESETS: Final = (
    VendorPreset(
        "deepseek",
        "DeepSeek",
        "openai_compatible",
        "https://api.deepseek.com",
        _THINKING,
        "https://platform.deepseek.com/api_keys",
    ),
    VendorPreset(
        "dashscope",
        "通义千问 (DashScope)",
        "openai_compatible",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        (*_SEEING, "embedding"),
        "https://bailian.console.aliyun.com/?tab=model#/api-key",
        "qwen",
    ),
    VendorPreset(
        "moonshot",
        "Moonshot (Kimi)",
        "openai_compatible",
        "https://api.moonshot.cn/v1",
        _THINKING,
        "https://platform.moonshot.cn/console/api-keys",
    ),
    VendorPreset(
        "zhipu",
        "智谱 GLM",
        "openai_compatible",
        "https://open.bigmodel.cn/api/paas/v4",
        (*_THINKING, "embedding"),
        "https://open.bigmodel.cn/usercenter/proj-mgmt/apikeys",
    ),
    VendorPreset(
        "siliconflow",
        "SiliconFlow",
        "openai_compatible",
        "https://api.siliconflow.cn/v1",
        (*_THINKING, "embedding", "transcription"),
        "https://cloud.siliconflow.cn/account/ak",
    ),
    VendorPreset(
        "volcengine",
        "火山方舟",
        "openai_compatible",
        "https://ark.cn-beijing.volces.com/api/v3",
        _SEEING,
        "https://console.volcengine.com/ark",
    ),
    VendorPreset(
        "minimax",
        "MiniMax",
        "openai_compatible",
        "https://api.minimaxi.com/v1",
        _THINKING,
        "https://platform.minimaxi.com",
    ),
    VendorPreset(
        "stepfun",
        "阶跃星辰",
        "openai_compatible",
        "https://api.stepfun.com/v1",
        (*_THINKING, "transcription"),
        "https://platform.stepfun.com",
    ),
    VendorPreset(
        "openai",
        "OpenAI",
        "openai_responses",
        "https://api.openai.com/v1",
        _SEEING,
        "https://platform.openai.com/api-keys",
    ),
    VendorPreset(
        "openai-chat",
        "OpenAI (Chat Completions)",
        "openai_chat",
        "https://api.openai.com/v1",
        (*_TOOLS, "vision", "embedding", "transcription"),
        "https://platform.openai.com/api-keys",
        "openai",
    ),
    VendorPreset(
        "anthropic",
        "Anthropic",
        "anthropic",
        "https://api.anthropic.com/v1",
        _SEEING,
        "https://platform.claude.com/settings/keys",
    ),
    VendorPreset(
        "google",
        "Google Gemini",
        "openai_compatible",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        (*_SEEING, "embedding"),
        "https://aistudio.google.com/apikey",
    ),
    VendorPreset(
        "openrouter",
        "OpenRouter",
        "openai_compatible",
        "https://openrouter.ai/api/v1",
        _TOOLS,
        "https://openrouter.ai/settings/keys",
    ),
    VendorPreset(
        "groq",
        "Groq",
        "openai_compatible",
        "https://api.groq.com/openai/v1",
        (*_TOOLS, "transcription"),
        "https://console.groq.com/keys",
    ),
    VendorPreset(
        "mistral",
        "Mistral AI",
        "openai_compatible",
        "https://api.mistral.ai/v1",
        (*_TOOLS, "embedding", "transcription"),
        "https://console.mistral.ai/api-keys",
    ),
    VendorPreset(
        "xai",
        "xAI",
        "openai_compatible",
        "https://api.x.ai/v1",
        _SEEING,
        "https://console.x.ai",
    ),
    VendorPreset("ollama", "Ollama", "ollama", "http://127.0.0.1:11434", _CHAT, None),
    VendorPreset(
        "lmstudio", "LM Studio", "openai_compatible", "http://127.0.0.1:1234/v1", _CHAT, None
    ),
    VendorPreset(
        "llamacpp", "llama.cpp", "openai_compatible", "http://127.0.0.1:8080/v1", _CHAT, None
    ),
    VendorPreset("vllm", "vLLM", "openai_compatible", "http://127.0.0.1:8000/v1", _CHAT, None),
    VendorPreset(
        "custom", "Custom", "openai_compatible", "https://api.example.com/v1", _CHAT, None
    ),
)

_CAPABILITIES: Final = {
    (preset.provider_type, preset.base_url): frozenset(preset.capabilities) for preset in PRESETS
}


def preset_capabilities(provider_type: ProviderType, base_url: str) -> frozenset[Capability]:
    """Return what the preset of this address says, chat alone where there is none.

    Chat Completions goes by two names here; they count as one.
    """
    alternatives: dict[ProviderType, ProviderType] = {
        "openai_chat": "openai_compatible",
        "openai_compatible": "openai_chat",
    }
    other = alternatives.get(provider_type, provider_type)
    return (
        _CAPABILITIES.get((provider_type, base_url))
        or _CAPABILITIES.get((other, base_url))
        or frozenset(_CHAT)
    )
