"""Wire models of model providers."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from sidecar.kernel.paging import Page
from sidecar.providers.schemas.model_call import Capability
from sidecar.providers.schemas.request_overrides import (
    RequestCapability,
    RequestOverride,
    RequestOverrides,
)

ProviderType = Literal[
    "openai_responses", "openai_chat", "openai_compatible", "anthropic", "ollama", "mock"
]


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
