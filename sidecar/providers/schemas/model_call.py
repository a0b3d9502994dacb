"""What a model call is made of, the same for every provider and every caller."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, Literal

Capability = Literal[
    "chat",
    "streaming",
    "tool_calling",
    "vision",
    "reasoning",
    "embedding",
    "transcription",
    "speaker_matching",
]

Role = Literal["system", "user", "assistant", "tool"]

ModelEventName = Literal[
    "TextDelta",
    "ThinkingDelta",
    "ToolCallStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "Usage",
    "Error",
    "Done",
]

TERMINAL_EVENT: Final = "Done"

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "other"]
"""Why a model stopped: it was done, or not allowed more, or wants tools, or was held back."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that the model may call. ``name`` is ours and may hold dots; adapters map it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made, with its whole arguments."""

    tool_call_id: str
    name: str
    arguments: dict[str, Any]

    def arguments_text(self) -> str:
        """Return the arguments as JSON."""
        return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":"))


MOST_IMAGES: Final = 8
IMAGE_BYTES: Final = 5 * 1024 * 1024
_IMAGE: Final = re.compile(
    r"data:image/(?:png;base64,iVBORw0KGgo|jpeg;base64,/9j/|webp;base64,UklGR[A-Za-z0-9+/]{6}XRUJQ)"
    r"[A-Za-z0-9+/]*={0,2}"
)
"""A data URI whose content begins as a file of its type does."""


def _is_image(uri: str) -> bool:
    return len(uri) <= IMAGE_BYTES * 4 // 3 + 64 and _IMAGE.fullmatch(uri) is not None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation as a model is given it."""

    role: Role
    content: str
    images: tuple[str, ...] = ()
    """Data URIs (``data:image/png;base64,…``) of PNG, JPEG or WebP; each adapter sends them in its own form."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message."""
    tool_call_id: str | None = None
    """Of a tool's message: the call that it answers."""
    reasoning_content: str | None = None
    """Of an assistant's message: its thinking, given back where the protocol wants it."""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for too many images, and for one that is no bounded data URI of an image."""
        if len(self.images) > MOST_IMAGES or not all(map(_is_image, self.images)):
            raise ValueError("not data URIs of PNG, JPEG or WebP images of 5 MiB")


@dataclass(frozen=True, slots=True)
class ChatTarget:
    """A provider and model that were looked up and may be called."""

    provider_id: str
    provider_name: str
    model: str
    capabilities: frozenset[Capability]
    context_window: int | None = None
    """In tokens; None where nobody says."""
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is asked of a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None
    source: str = "chat"
    """Who asks, for the usage ledger: ``chat``, ``agent``, ``benchmark``, ``probe``, …"""


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """One event of a model stream, without sequence and time, which the edge adds.

    ``data`` by event: ``TextDelta``/``ThinkingDelta`` {text}; ``ToolCallStart`` {tool_call_id, name};
    ``ToolCallDelta`` {tool_call_id, arguments_delta}; ``ToolCallEnd`` {tool_call_id, name, arguments,
    status}; ``Usage`` {input_tokens, output_tokens, total_tokens}; ``Error`` {code, message, details};
    ``Done`` {status: completed|failed|cancelled, finish_reason}.
    """

    event: ModelEventName
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as the provider reported them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole answer of a call that isn't streamed."""

    content: str
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None
    finish_reason: FinishReason | None = None
