"""How vendors deviate from the protocol that they say they speak.

A profile is data, with small hooks where data can't say it; the adapters ask it and know no vendor. A
vendor is recognised by the host of the address. What isn't listed gets :data:`DEFAULT`, which fits
local servers and gateways: it sends what all understand and reads whatever is known to come.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from sidecar.providers.schemas.model_call import Capability

ModelFacts = Mapping[str, Any]
"""What a vendor's list says of a model: some of ``capabilities``, ``context_window``,
``max_output_tokens``, ``deprecated``, ``display_name``."""


def _nothing(_: dict[str, Any]) -> ModelFacts:
    return {}


@dataclass(frozen=True, slots=True)
class Profile:
    """A vendor's ways with the Chat Completions protocol."""

    name: str
    hosts: tuple[str, ...] = ()
    """Hosts, or ends of hosts that begin with a dot."""
    output_limit_field: str = "max_tokens"
    usage_option: bool = True
    """Whether ``stream_options`` is understood. Those that refuse it report usage unasked."""
    reasoning_back: str | None = "reasoning_content"
    """The field in which an assistant's thinking is given back; None where that is refused."""
    think_tags: bool = True
    """Whether thinking may come inside the text, between ``<think>`` tags."""
    model_facts: Callable[[dict[str, Any]], ModelFacts] = _nothing
    """Reads an item of the vendor's list of models."""


def _capabilities(**known: Any) -> list[Capability]:
    found: list[Capability] = ["chat", "streaming"]
    extra: dict[str, Capability] = {
        "tools": "tool_calling",
        "vision": "vision",
        "reasoning": "reasoning",
    }
    return found + [capability for name, capability in extra.items() if known.get(name)]


def _openrouter(item: dict[str, Any]) -> ModelFacts:
    parameters = _texts(item.get("supported_parameters"))
    architecture = _object(item.get("architecture"))
    return {
        "display_name": item.get("name"),
        "context_window": item.get("context_length"),
        "max_output_tokens": _object(item.get("top_provider")).get("max_completion_tokens"),
        "capabilities": _capabilities(
            tools="tools" in parameters,
            reasoning="reasoning" in parameters,
            vision="image" in _texts(architecture.get("input_modalities")),
        ),
    }


def _mistral(item: dict[str, Any]) -> ModelFacts:
    told = _object(item.get("capabilities"))
    facts: dict[str, Any] = {
        "display_name": item.get("name"),
        "context_window": item.get("max_context_length"),
        "deprecated": bool(item.get("deprecation")),
    }
    if told.get("completion_chat"):
        facts["capabilities"] = _capabilities(
            tools=told.get("function_calling"),
            vision=told.get("vision"),
            reasoning=told.get("reasoning"),
        )
    return facts


def _groq(item: dict[str, Any]) -> ModelFacts:
    return {
        "context_window": item.get("context_window"),
        "max_output_tokens": item.get("max_completion_tokens"),
        "deprecated": item.get("active") is False,
    }


def _moonshot(item: dict[str, Any]) -> ModelFacts:
    facts: dict[str, Any] = {"context_window": item.get("context_length")}
    if "supports_image_in" in item:
        # Tool use isn't told, so it isn't claimed.
        facts["capabilities"] = _capabilities(
            vision=item.get("supports_image_in"), reasoning=item.get("supports_reasoning")
        )
    return facts


def _local(item: dict[str, Any]) -> ModelFacts:
    """Of vLLM, llama.cpp and LM Studio."""
    meta = _object(item.get("meta"))
    return {
        "context_window": item.get("max_model_len")
        or item.get("max_context_length")
        or meta.get("n_ctx")
        or meta.get("n_ctx_train")
        or item.get("context_length")
        or item.get("context_window"),
        # A server may call a model by the file that it was loaded from.
        "display_name": item.get("display_name") or _file_name(item.get("id")),
    }


def _file_name(model: Any) -> str | None:
    is_file = isinstance(model, str) and model.lower().endswith(".gguf")
    return re.split(r"[/\\]", model)[-1] if is_file else None


DEFAULT: Final = Profile("default", model_facts=_local)

PROFILES: Final = (
    Profile(
        "openai",
        (".openai.com",),
        output_limit_field="max_completion_tokens",
        reasoning_back=None,
        think_tags=False,
    ),
    Profile("deepseek", (".deepseek.com",), think_tags=False),
    Profile("dashscope", (".aliyuncs.com",)),
    Profile("moonshot", (".moonshot.cn", ".moonshot.ai"), model_facts=_moonshot),
    Profile("zhipu", (".bigmodel.cn", ".z.ai"), usage_option=False),
    Profile("siliconflow", (".siliconflow.cn", ".siliconflow.com")),
    Profile("volcengine", (".volces.com",)),
    Profile("minimax", (".minimaxi.com", ".minimax.io", ".minimax.chat")),
    Profile("stepfun", (".stepfun.com", ".stepfun.ai")),
    Profile("google", (".googleapis.com",), reasoning_back=None, think_tags=False),
    Profile(
        "openrouter",
        ("openrouter.ai",),
        reasoning_back="reasoning",
        think_tags=False,
        model_facts=_openrouter,
    ),
    Profile("groq", (".groq.com",), reasoning_back="reasoning", model_facts=_groq),
    Profile(
        "mistral",
        (".mistral.ai",),
        usage_option=False,
        reasoning_back=None,
        think_tags=False,
        model_facts=_mistral,
    ),
    Profile("xai", (".x.ai",), think_tags=False),
)


def profile_of(base_url: str) -> Profile:
    """Return the profile of the vendor at an address."""
    host = (urlsplit(base_url).hostname or "").lower()
    for profile in PROFILES:
        for known in profile.hosts:
            if host == known or (known.startswith(".") and f".{host}".endswith(known)):
                return profile
    return DEFAULT


def reported_usage(chunk: Mapping[str, Any], choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the usage object of a piece, from wherever vendors are known to put it."""
    places = (chunk.get("usage"), choice.get("usage"), _object(chunk.get("x_groq")).get("usage"))
    return next((place for place in places if isinstance(place, dict) and place), {})


SIGNATURE_FIELD: Final = "extra_content"
"""Where Google puts the signature of a call's thought, which has to come back with the call."""

# MiniMax answers 200 and says inside what is wrong.
_MINIMAX_CODES: Final = {
    1002: "rate_limit",
    1004: "authentication_error",
    1008: "insufficient_balance",
    1039: "too many tokens",
    2049: "invalid_api_key",
}


def told_error(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the error inside an answer of status 200, None if there is none."""
    if answer.get("error"):
        return dict(answer)
    told = _object(answer.get("base_resp"))
    code = told.get("status_code")
    if not isinstance(code, int) or code == 0:
        return None
    return {
        "error": {"code": _MINIMAX_CODES.get(code, str(code)), "message": told.get("status_msg")}
    }


def reasoning_of(delta: Mapping[str, Any]) -> str:
    """Return the thinking in a message or a piece of one, under whatever name it comes."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        value = delta.get(name)
        if isinstance(value, str) and value:
            return value
    details = delta.get("reasoning_details")
    if isinstance(details, list):
        parts = (part.get("text") or part.get("summary") for part in map(_object, details))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
