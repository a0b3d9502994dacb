"""Wire models of model routing."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

RoutedCapability = Literal["embedding", "transcription", "speaker_matching"]
CAPABILITIES: Final[tuple[RoutedCapability, ...]] = (
    "embedding",
    "transcription",
    "speaker_matching",
)
DEFAULT_ENDPOINTS: Final[dict[RoutedCapability, str]] = {
    "embedding": "/embeddings",
    "transcription": "/audio/transcriptions",
    "speaker_matching": "/audio/speaker-matches",
}
MOST_TEXTS: Final = 256
LONGEST_TEXT: Final = 32_000

# Nothing is encoded in it: what %2e or %5c would become on the other side is anybody's guess.
_ENDPOINT: Final = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?")


def _endpoint(text: str) -> str:
    if not _ENDPOINT.fullmatch(text) or {".", ".."} & set(text.split("/")):
        raise PydanticCustomError(
            "endpoint", "Not a path below the provider's address, such as /embeddings."
        )
    return text


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise PydanticCustomError("name", "Not a name.")
    return text


Endpoint = Annotated[
    str,
    Field(
        max_length=200,
        description="A path below the provider's base URL; null or left out: the usual one.",
    ),
    AfterValidator(_endpoint),
]
Name = Annotated[str, Field(max_length=200), AfterValidator(_name)]


class Route(BaseModel):
    """A provider's model, and where it is asked."""

    model_config = ConfigDict(extra="forbid")

    provider_id: Name = Field(
        description="A provider of type `openai_chat` or `openai_compatible`."
    )
    model: Name
    endpoint: Endpoint | None = None


class AudioRoute(Route):
    """Where transcription or speaker matching is sent."""

    dimensions: None = Field(None, exclude=True, description="Embedding has them, sound has none.")


class EmbeddingRoute(Route):
    """Where embedding is sent."""

    dimensions: Annotated[StrictInt, Field(ge=1, le=16384)] | None = Field(
        None,
        description="Asked of the provider, and checked; null: whatever the model gives.",
    )


class ModelRoutingConfig(BaseModel):
    """Who does what. null is the local model alone."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[StrictInt, Field(ge=0, le=2**53)] = Field(
        description="Rises by one with every change. A change names the version that it was made from."
    )
    embedding: EmbeddingRoute | None
    transcription: AudioRoute | None
    speaker_matching: AudioRoute | None

    @model_validator(mode="after")
    def _with_endpoints(self) -> Self:
        for capability, route in self.routes().items():
            route.endpoint = route.endpoint or DEFAULT_ENDPOINTS[capability]
        return self

    def routes(self) -> dict[RoutedCapability, AudioRoute | EmbeddingRoute]:
        """Return the routes that are set."""
        found = {name: getattr(self, name) for name in CAPABILITIES}
        return {name: route for name, route in found.items() if route is not None}


class LocalBackend(BaseModel):
    """What this machine can do by itself."""

    installed: bool
    model_id: str | None = Field(description="The model that would be used; null if none is.")


class LocalBackends(BaseModel):
    """What steps in where no route is set or its provider fails."""

    embedding: LocalBackend
    transcription: LocalBackend
    speaker_matching: LocalBackend


class ModelRouting(BaseModel):
    """The configuration, and what is there without it."""

    config: ModelRoutingConfig
    local_backends: LocalBackends


class EmbeddingsRequest(BaseModel):
    """Texts to embed."""

    texts: list[Annotated[str, Field(max_length=LONGEST_TEXT)]] = Field(
        min_length=1, max_length=MOST_TEXTS
    )


class Embeddings(BaseModel):
    """A vector for each text, in order. All come from one model."""

    vectors: list[list[float]]
    source: Literal["api", "local"]
    model_id: str = Field(description="The model that computed them.")
    dimensions: int
    fallback_reason: str | None = Field(
        description="The code of the provider's failure, where the local model stepped in."
    )
