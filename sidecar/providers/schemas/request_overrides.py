"""The rules by which a person changes the bodies that are sent to a provider."""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

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
