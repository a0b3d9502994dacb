"""Ollama's native chat."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sidecar.providers.failures import failure_told_in_stream
from sidecar.providers.protocols.adapter import (
    ChatCall,
    finish_reason_of,
    function_tools,
    image_parts,
    invalid,
    model_info,
)
from sidecar.providers.protocols.event_parts import (
    ThinkTags,
    ToolCallParts,
    WholeCharacters,
    finished_call,
    thinking_delta,
    token_usage,
    usage_event,
    whole_characters,
)
from sidecar.providers.protocols.frames import Frame, NdjsonReader
from sidecar.providers.protocols.profiles import Profile
from sidecar.providers.schemas.model_call import (
    Capability,
    FinishReason,
    Message,
    ModelEvent,
    ModelReply,
    TokenUsage,
)
from sidecar.providers.schemas.wire import ModelInfo

SHOW_PATH: Final = "/api/show"

_FINISH: Final[Mapping[str, FinishReason]] = {"stop": "stop", "length": "length"}
_CAPABILITIES: Final[Mapping[str, tuple[Capability, ...]]] = {
    "completion": ("chat", "streaming"),
    "tools": ("tool_calling",),
    "vision": ("vision",),
    "thinking": ("reasoning",),
    "embedding": ("embedding",),
}


class Ollama:
    """The adapter."""

    protocol = "ollama_chat"
    chat_path = "/api/chat"
    models_path = "/api/tags"
    stream_type = "application/x-ndjson"

    def headers(self, secret: str | None) -> Mapping[str, str]:
        """Return a bearer token, if there is one: servers behind a gateway want it."""
        return {"Authorization": f"Bearer {secret}"} if secret else {}

    def chat_body(self, call: ChatCall, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request."""
        request = call.request
        names = {
            made.tool_call_id: made.name
            for message in request.messages
            for made in message.tool_calls
        }
        body: dict[str, Any] = {
            "model": call.model,
            "messages": [_message(message, call, names) for message in request.messages],
        }
        if request.tools:
            body["tools"] = function_tools(call)
        options: dict[str, Any] = {}
        if request.max_output_tokens is not None:
            options["num_predict"] = request.max_output_tokens
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if options:
            body["options"] = options
        body["stream"] = stream
        return body

    def reader(self) -> NdjsonReader:
        """Return a reader for one streamed answer."""
        return NdjsonReader()

    def decoder(self, call: ChatCall) -> "OllamaDecoder":
        """Return a decoder for one streamed answer."""
        return OllamaDecoder(call)

    def reply(self, call: ChatCall, answer: dict[str, Any]) -> ModelReply:
        """Read an answer that came in one piece."""
        if answer.get("error"):
            raise failure_told_in_stream(answer, {})
        message = answer.get("message")
        if not isinstance(message, dict):
            raise invalid("message_missing")
        tags, whole = ThinkTags(), WholeCharacters()
        told = [*tags.feed(whole.feed(_text(message.get("content"))) + whole.rest()), *tags.rest()]
        thinking = _text(message.get("thinking"))
        thinking += "".join(event.data["text"] for event in told if event.event == "ThinkingDelta")
        calls = tuple(
            finished_call(piece.get("id"), *_function(piece), call.names)
            for piece in _calls(message)
        )
        reason = finish_reason_of(answer.get("done_reason"), _FINISH)
        return ModelReply(
            content="".join(event.data["text"] for event in told if event.event == "TextDelta"),
            reasoning_content=(whole.feed(thinking) + whole.rest()) or None,
            tool_calls=calls,
            usage=_usage(answer),
            finish_reason="tool_calls" if calls and reason == "stop" else reason,
        )

    def models(self, answer: dict[str, Any], profile: Profile) -> list[ModelInfo]:
        """Read a list of models; what each can do is told by another call."""
        del profile
        items = answer.get("models")
        if not isinstance(items, list):
            raise invalid("models_missing")
        found = []
        for item in items:
            name = item.get("model") or item.get("name") if isinstance(item, dict) else None
            if isinstance(name, str) and name:
                found.append(model_info(name, {"metadata": _metadata(item)}))
        return found


def with_details(listed: ModelInfo, shown: Any) -> ModelInfo:
    """Return a model of the list with what the server shows of it."""
    if not isinstance(shown, dict):
        return listed
    told = shown.get("capabilities")
    capabilities = [
        ours
        for word in (told if isinstance(told, list) else [])
        for ours in _CAPABILITIES.get(word, ())
    ]
    info = shown.get("model_info")
    lengths = [
        value
        for name, value in (info.items() if isinstance(info, dict) else ())
        if name.endswith(".context_length")
    ]
    facts = {
        "capabilities": capabilities,
        "context_window": lengths[0] if lengths else None,
        "metadata": listed.metadata,
    }
    return model_info(listed.model, facts)


def _message(message: Message, call: ChatCall, names: Mapping[str, str]) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        sent["images"] = [image_parts(uri)[1] for uri in message.images]
    if message.reasoning_content:
        sent["thinking"] = message.reasoning_content
    if message.tool_calls:
        sent["tool_calls"] = [
            {"function": {"name": call.names.sent(made.name), "arguments": made.arguments}}
            for made in message.tool_calls
        ]
    if message.role == "tool" and (name := names.get(message.tool_call_id or "")):
        sent["tool_name"] = call.names.sent(name)
    return sent


class OllamaDecoder:
    """Reads the lines of one answer."""

    def __init__(self, call: ChatCall) -> None:
        self.usage: TokenUsage | None = None
        self.finish_reason: FinishReason | None = None
        self.ended = False
        self._tags = ThinkTags()
        self._text = WholeCharacters()
        self._thinking = WholeCharacters()
        self._calls = ToolCallParts(call.names)
        self._made = 0

    @property
    def complete(self) -> bool:
        """Whether the line that ends every answer was there."""
        return self.ended

    def decode(self, frame: Frame) -> Iterator[ModelEvent]:
        """Yield the events of a line."""
        told = frame.json()
        if told.get("error"):
            raise failure_told_in_stream(told, {})
        message = told.get("message")
        done = told.get("done") is True
        if not isinstance(message, dict):
            if not done:
                raise invalid("message_missing")
            message = {}
        if text := self._thinking.feed(_text(message.get("thinking"))):
            yield thinking_delta(text)
        if text := self._text.feed(_text(message.get("content"))):
            yield from self._tags.feed(text)
        for piece in _calls(message):
            name, arguments = _function(piece)
            # Each comes whole, so each is a call of its own.
            self._made += 1
            given = arguments if arguments is not None else {}
            yield from self._calls.add(
                self._made, call_id=piece.get("id"), name=name, arguments=given
            )
        if done:
            reason = finish_reason_of(told.get("done_reason"), _FINISH)
            self.finish_reason = "tool_calls" if self._calls and reason == "stop" else reason
            self.usage = _usage(told)
            self.ended = True

    def finish(self) -> Iterator[ModelEvent]:
        """Yield what is still held back, the ends of tool calls and the usage."""
        if rest := self._thinking.rest():
            yield thinking_delta(rest)
        if rest := self._text.rest():
            yield from self._tags.feed(rest)
        yield from self._tags.rest()
        yield from self._calls.end()
        if self.usage:
            yield usage_event(self.usage)


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    found = calls if isinstance(calls, list) else []
    if not all(isinstance(call, dict) for call in found):
        raise invalid("tool_call_not_object")
    return found


def _function(piece: dict[str, Any]) -> tuple[Any, Any]:
    function = piece.get("function")
    if not isinstance(function, dict):
        raise invalid("function_missing")
    return function.get("name"), function.get("arguments")


def _usage(told: Mapping[str, Any]) -> TokenUsage | None:
    return token_usage(told.get("prompt_eval_count"), told.get("eval_count"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _metadata(item: dict[str, Any]) -> dict[str, Any]:
    details = item.get("details")
    wanted = ("family", "parameter_size", "quantization_level")
    known = details if isinstance(details, dict) else {}
    return {
        name: whole_characters(known[name]) for name in wanted if isinstance(known.get(name), str)
    }
