"""What a model call is made of, the same for every provider and every caller; and the wire models."""

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sidecar.kernel.paging import Page

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


ProviderType = Literal[
    "openai_responses", "openai_chat", "openai_compatible", "anthropic", "ollama", "mock"
]
RequestCapability = Literal["chat", "embedding", "transcription", "speaker_matching"]
REQUEST_CAPABILITIES: Final[tuple[RequestCapability, ...]] = (
    "chat",
    "embedding",
    "transcription",
    "speaker_matching",
)

MOST_OVERRIDES: Final = 100
PROTECTED_FIELDS: Final = frozenset(
    {
        *("messages", "input", "file", "reference_file", "stream"),
        # No body has these; a rule that names one is meant for something that rules can't reach.
        *("headers", "extra_headers", "http_headers", "url", "base_url", "endpoint", "credential"),
        *("credential_id", "credentials", "api_key", "apikey", "authorization", "secret"),
    }
)
_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)+")


def _pointer(path: str) -> str:
    if not _POINTER.fullmatch(path) or path == "/":
        raise PydanticCustomError("pointer", "Not a JSON pointer to a field, such as /temperature.")
    first = pointer_parts(path)[0]
    if first.strip().casefold().replace("-", "_") in PROTECTED_FIELDS:
        raise PydanticCustomError("protected", "This part of a request can't be overridden.")
    return path


def pointer_parts(path: str) -> list[str]:
    """Return the steps of a JSON pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


class RequestOverride(BaseModel):
    """A change to the bodies that are sent to a provider."""

    model_config = ConfigDict(extra="forbid")

    op: Literal["set", "remove"]
    path: Annotated[str, AfterValidator(_pointer)] = Field(
        min_length=2,
        max_length=512,
        description="JSON pointer into the body, such as `/thinking/type`; `-` appends to a list. "
        "The content (`messages`, `input`, `file`, `reference_file`) and `stream` are out of reach.",
    )
    value: Any = Field(None, description="Any JSON value; with `set` only.")
    capabilities: list[RequestCapability] = Field(
        default_factory=lambda: list(REQUEST_CAPABILITIES),
        min_length=1,
        max_length=20,
        description="For which requests it holds; all by default.",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        given = "value" in self.model_fields_set
        if given and self.op == "remove" and self.value is not None:
            raise PydanticCustomError("value", "A rule that removes has no value.")
        if not given and self.op == "set":
            raise PydanticCustomError("value", "A rule that sets needs a value.")
        self.capabilities = [name for name in REQUEST_CAPABILITIES if name in self.capabilities]
        return self


RequestOverrides = Annotated[list[RequestOverride], Field(max_length=MOST_OVERRIDES)]


class RequestRules(BaseModel):
    """Changes to request bodies, in the order in which they are made."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1]
    request_overrides: RequestOverrides


def _base_url(text: str) -> str:
    problem = PydanticCustomError(
        "base_url",
        "Not an absolute http or https address without user, query and fragment.",
    )
    if any(character.isspace() or not character.isprintable() for character in text):
        raise problem
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise problem from None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or port == 0 or "\\" in text:
        raise problem
    if "@" in parts.netloc or "?" in text or "#" in text:
        raise problem
    return text.rstrip("/")


def _name(text: str) -> str:
    if not text.strip() or any("\ud800" <= character <= "\udfff" for character in text):
        raise PydanticCustomError("name", "Not a name.")
    return text


Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_name)]
BaseUrl = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description="Absolute, http or https; servers on this machine and in the local network too.",
    ),
    AfterValidator(_base_url),
]
CredentialId = Annotated[str, Field(min_length=1, max_length=200)]
# Long enough for the path of a file, which some servers call a model by.
ModelName = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_name)]
Capabilities = Annotated[list[Capability], Field(max_length=40)]


class ProviderCreateRequest(BaseModel):
    """A provider's configuration. A key is never part of it, only the id under which it is kept."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    provider_type: ProviderType = Field(
        description="The protocol. `mock` exists in development only."
    )
    base_url: BaseUrl
    credential_id: CredentialId | None = Field(None, description="null: no key is sent.")
    default_model: ModelName | None = Field(None, description="Used where no model is named.")
    capabilities: Capabilities = Field(
        default_factory=list,
        description="What it is used for; [] takes what the preset of this address says, else chat.",
    )
    enabled: bool = True
    request_overrides: RequestOverrides = Field(default_factory=list)


class ProviderPatch(BaseModel):
    """What is to change; what is left out stays. null takes credential_id and default_model away."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    provider_type: ProviderType | None = None
    base_url: BaseUrl | None = None
    credential_id: CredentialId | None = None
    default_model: ModelName | None = None
    capabilities: Capabilities | None = None
    enabled: bool | None = None
    request_overrides: RequestOverrides | None = None


class Provider(BaseModel):
    """A provider as it is stored."""

    provider_id: str
    name: str
    provider_type: ProviderType
    base_url: str
    credential_id: str | None
    credential_configured: bool = Field(description="Whether a secret is kept under that id.")
    default_model: str | None
    capabilities: list[Capability] = Field(
        description="As configured; [] means those of the preset, else chat."
    )
    enabled: bool
    request_overrides: list[RequestOverride]
    created_at: str
    updated_at: str


class ProviderList(BaseModel):
    """A page of providers, oldest first."""

    items: list[Provider]
    page: Page


class ModelInfo(BaseModel):
    """A model that a provider offers."""

    model: str
    display_name: str
    capabilities: list[Capability] = Field(
        description="What the provider tells; where it tells nothing, neither tool use nor vision."
    )
    context_window: int | None = Field(None, description="In tokens.")
    max_output_tokens: int | None = None
    deprecated: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)


class ModelList(BaseModel):
    """The models of a provider, as it lists them now."""

    items: list[ModelInfo]


class Preset(BaseModel):
    """A vendor to choose from; enough to create a provider of, once its key is stored."""

    preset_id: str
    name: str
    provider_type: ProviderType
    base_url: str
    logo_id: str = Field(description="Names a picture that the app carries.")
    description: str = Field(description="In the language of the request.")
    capabilities: list[Capability]
    needs_credential: bool
    credential_hint: str = Field(description="Where a key comes from, for a person.")


class PresetList(BaseModel):
    """The vendors."""

    items: list[Preset]


class ProviderTestResult(BaseModel):
    """What a real call said of a configuration."""

    success: bool
    model: str | None = Field(description="The model that answered, or that would be asked.")
    duration_ms: int
    error_code: str | None = Field(None, description="null after success.")
    message: str | None = Field(None, description="What went wrong, for a person.")


class ProbeRequest(BaseModel):
    """A configuration to be tried by a real, short conversation."""

    model_config = ConfigDict(extra="forbid")

    provider: ProviderCreateRequest
    stream: bool = Field(description="Whether the provider is asked for a streamed answer.")


class ProbeResult(BaseModel):
    """The provider answered."""

    success: Literal[True]
    stream: bool
    model: str
    message: str = Field(description="What the model said.")


class PreviewRequest(BaseModel):
    """A configuration whose request is to be shown."""

    model_config = ConfigDict(extra="forbid")

    provider: ProviderCreateRequest
    capability: RequestCapability = "chat"
    stream: bool = Field(True, description="For chat: whether a streamed answer is asked for.")


class Preview(BaseModel):
    """The body as it would be sent, its content hidden."""

    capability: RequestCapability
    body: dict[str, Any] = Field(
        description="The fields of a JSON body, or of a form for transcription and speaker matching."
    )
    unplaced_rules: list[int] = Field(
        description="Positions of the rules that find no place in this body."
    )
