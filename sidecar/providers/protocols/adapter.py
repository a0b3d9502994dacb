"""What a protocol's adapter does. Adapters turn requests into bodies and bytes into events; they open nothing."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sidecar.providers.failures import UpstreamError
from sidecar.providers.protocols.event_parts import whole_characters
from sidecar.providers.protocols.frames import Frame, FrameReader
from sidecar.providers.protocols.profiles import Profile
from sidecar.providers.protocols.tool_names import ToolNames
from sidecar.providers.schemas.model_call import (
    Capability,
    FinishReason,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TokenUsage,
)
from sidecar.providers.schemas.wire import ModelInfo

_DATA_URI: Final = re.compile(r"data:(image/(?:png|jpeg|webp));base64,([A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One call of a chat model, as it is built and read."""

    model: str
    request: ModelRequest
    profile: Profile
    names: ToolNames
    max_output_tokens: int | None = None
    """What the model can write at the most, where it is known."""
    base_url: str = ""

    @property
    def origin(self) -> str:
        """Who is asked: what one model signed is nothing to another."""
        return f"{self.base_url}\n{self.model}"

    @classmethod
    def of(
        cls,
        model: str,
        request: ModelRequest,
        profile: Profile,
        max_output_tokens: int | None = None,
        base_url: str = "",
    ) -> "ChatCall":
        """Return the call; tools of earlier turns keep their names though they may not be offered now."""
        offered = [tool.name for tool in request.tools]
        called = [call.name for message in request.messages for call in message.tool_calls]
        names = ToolNames([*offered, *called])
        return cls(model, request, profile, names, max_output_tokens, base_url)


class Decoder(Protocol):
    """Reads one streamed answer."""

    finish_reason: FinishReason | None
    """Why the model stopped; None while it goes on."""
    ended: bool
    """Whether the protocol's end was seen: nothing more is to be read."""

    @property
    def usage(self) -> TokenUsage | None:
        """What was reported so far."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the answer is whole, should the stream end here."""
        ...

    def decode(self, frame: Frame) -> Iterator[ModelEvent]:
        """Yield the events of a frame. Raises :class:`ProjectError` for what the protocol has no place for."""
        ...

    def finish(self) -> Iterator[ModelEvent]:
        """Yield what the end of the stream completes. Only for a stream that came to its end."""
        ...


class Adapter(Protocol):
    """One protocol."""

    protocol: str
    """Its name, for reports."""
    chat_path: str
    models_path: str
    stream_type: str
    """Media type of a streamed answer."""

    def headers(self, secret: str | None) -> Mapping[str, str]:
        """Return what authorises a request."""
        ...

    def chat_body(self, call: ChatCall, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request."""
        ...

    def reader(self) -> FrameReader:
        """Return a reader for one streamed answer."""
        ...

    def decoder(self, call: ChatCall) -> Decoder:
        """Return a decoder for one streamed answer."""
        ...

    def reply(self, call: ChatCall, answer: dict[str, Any]) -> ModelReply:
        """Read an answer that came in one piece; raises ``PROVIDER_INVALID_RESPONSE``."""
        ...

    def models(self, answer: dict[str, Any], profile: Profile) -> list[ModelInfo]:
        """Read a list of models; raises ``PROVIDER_INVALID_RESPONSE``."""
        ...


def invalid(reason: str) -> UpstreamError:
    """Return the error for an answer that lacks a part that its protocol requires."""
    return UpstreamError("PROVIDER_INVALID_RESPONSE", {"reason": reason})


def finish_reason_of(word: Any, known: Mapping[str, FinishReason]) -> FinishReason:
    """Return our word for a vendor's."""
    return known.get(word, "other") if isinstance(word, str) else "other"


def function_tools(call: ChatCall) -> list[dict[str, Any]]:
    """Return the tools that are offered, in the form of Chat Completions, which others took over."""
    return [
        {
            "type": "function",
            "function": {
                "name": call.names.sent(tool.name),
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in call.request.tools
    ]


def image_parts(data_uri: str) -> tuple[str, str]:
    """Return the media type and the base64 text of an image; raises ``ValueError`` for anything else."""
    match = _DATA_URI.fullmatch(data_uri)
    if match is None:
        raise ValueError("not a data URI of a PNG, JPEG or WebP")
    return match[1], match[2]


_EMBEDDING: Final = re.compile(
    r"embed|(?:^|[/_-])bge-|(?:^|[/_-])gte-|(?:^|[/_-])e5-", re.IGNORECASE
)
_TRANSCRIPTION: Final = re.compile(
    r"whisper|transcribe|sensevoice|(?:^|[/_-])asr(?:$|[/_-])", re.IGNORECASE
)


def guessed_capabilities(model: str) -> list[Capability]:
    """Return a cautious set for a model of which nothing but its name is known."""
    if _EMBEDDING.search(model):
        return ["embedding"]
    if _TRANSCRIPTION.search(model):
        return ["transcription"]
    return ["chat", "streaming"]


def model_info(model: str, facts: Mapping[str, Any]) -> ModelInfo:
    """Return an item of a list of models from what the vendor told; wrong types count as untold."""
    model = whole_characters(model)
    return ModelInfo(
        model=model,
        display_name=_text(facts.get("display_name")) or model,
        capabilities=facts.get("capabilities") or guessed_capabilities(model),
        context_window=_positive(facts.get("context_window")),
        max_output_tokens=_positive(facts.get("max_output_tokens")),
        deprecated=bool(facts.get("deprecated")),
        metadata=dict(facts.get("metadata") or {}),
    )


def _text(value: Any) -> str | None:
    return whole_characters(value) if isinstance(value, str) and value.strip() else None


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
