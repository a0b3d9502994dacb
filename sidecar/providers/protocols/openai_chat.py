"""Chat Completions: OpenAI's, and the many servers that speak it more or less."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sidecar.providers.failures import failure_told_in_stream
from sidecar.providers.protocols.adapter import (
    ChatCall,
    finish_reason_of,
    function_tools,
    invalid,
    model_info,
)
from sidecar.providers.protocols.event_parts import (
    ThinkTags,
    ToolCallParts,
    WholeCharacters,
    finished_call,
    text_delta,
    thinking_delta,
    token_usage,
    usage_event,
)
from sidecar.providers.protocols.frames import Frame, SseReader
from sidecar.providers.protocols.opaque_state import OpaqueState
from sidecar.providers.protocols.profiles import (
    SIGNATURE_FIELD,
    Profile,
    reasoning_of,
    reported_usage,
    told_error,
)
from sidecar.providers.schemas.model_call import (
    FinishReason,
    Message,
    ModelEvent,
    ModelReply,
    TokenUsage,
)
from sidecar.providers.schemas.wire import ModelInfo

END: Final = "[DONE]"
_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}


class OpenAiChat:
    """The adapter."""

    protocol = "openai_chat"
    chat_path = "/chat/completions"
    models_path = "/models"
    stream_type = "text/event-stream"

    def __init__(self) -> None:
        self._signed = OpaqueState()

    def headers(self, secret: str | None) -> Mapping[str, str]:
        """Return the bearer token, if there is one."""
        return {"Authorization": f"Bearer {secret}"} if secret else {}

    def chat_body(self, call: ChatCall, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request."""
        request, profile = call.request, call.profile
        body: dict[str, Any] = {
            "model": call.model,
            "messages": [_message(message, call, self._signed) for message in request.messages],
        }
        if request.tools:
            body["tools"] = function_tools(call)
        if request.max_output_tokens is not None:
            body[profile.output_limit_field] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body["stream"] = stream
        if stream and profile.usage_option:
            body["stream_options"] = {"include_usage": True}
        return body

    def reader(self) -> SseReader:
        """Return a reader for one streamed answer."""
        return SseReader()

    def decoder(self, call: ChatCall) -> "ChatDecoder":
        """Return a decoder for one streamed answer."""
        return ChatDecoder(call, self._signed)

    def reply(self, call: ChatCall, answer: dict[str, Any]) -> ModelReply:
        """Read an answer that came in one piece."""
        _raise_told_error(answer)
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise invalid("choices_missing")
        choice = choices[0]
        message = choice.get("message")
        if not isinstance(message, dict):
            raise invalid("message_missing")
        thinking, content = reasoning_of(message), _text_of(message.get("content"))
        if not thinking and call.profile.think_tags:
            thinking, content = _told_apart(content)
        calls = message.get("tool_calls")
        found = [
            call for call in (calls if isinstance(calls, list) else []) if isinstance(call, dict)
        ]
        for piece in found:
            _keep_signature(piece, call, self._signed)
        whole = WholeCharacters()
        return ModelReply(
            content=whole.feed(content) + whole.rest(),
            reasoning_content=(whole.feed(thinking) + whole.rest()) or None,
            tool_calls=tuple(
                finished_call(piece.get("id"), *_function(piece), call.names) for piece in found
            ),
            usage=_usage(reported_usage(answer, choice)),
            finish_reason=finish_reason_of(choice.get("finish_reason"), _FINISH),
        )

    def models(self, answer: dict[str, Any], profile: Profile) -> list[ModelInfo]:
        """Read a list of models."""
        items = answer.get("data", answer.get("models"))
        if not isinstance(items, list):
            raise invalid("models_missing")
        return [
            model_info(item["id"], profile.model_facts(item))
            for item in items
            if isinstance(item, dict) and isinstance(item.get("id"), str) and item["id"]
        ]


def _message(message: Message, call: ChatCall, signed: OpaqueState) -> dict[str, Any]:
    content: Any = message.content
    if message.images:
        text = [{"type": "text", "text": message.content}] if message.content else []
        images = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
        content = [*text, *images]
    sent: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                "id": made.tool_call_id,
                "type": "function",
                "function": {
                    "name": call.names.sent(made.name),
                    "arguments": made.arguments_text(),
                },
                **(signed.of(call.origin, made.tool_call_id) or {}),
            }
            for made in message.tool_calls
        ]
    if message.role == "tool":
        sent["tool_call_id"] = message.tool_call_id
    if message.reasoning_content and call.profile.reasoning_back:
        sent[call.profile.reasoning_back] = message.reasoning_content
    return sent


class ChatDecoder:
    """Reads the pieces of one answer."""

    def __init__(self, call: ChatCall, signed: OpaqueState) -> None:
        self._call = call
        self._signed = signed
        self.usage: TokenUsage | None = None
        self.finish_reason: FinishReason | None = None
        self.ended = False
        self._tags = ThinkTags() if call.profile.think_tags else None
        self._text = WholeCharacters()
        self._thinking = WholeCharacters()
        self._calls = ToolCallParts(call.names)

    @property
    def complete(self) -> bool:
        """Whether the model said why it stopped: not every server sends the closing line."""
        return self.ended or self.finish_reason is not None

    def decode(self, frame: Frame) -> Iterator[ModelEvent]:
        """Yield the events of a piece."""
        if frame.data.strip() == END:
            self.ended = True
            return
        if not frame.data.strip():
            return
        chunk = frame.json()
        if frame.event == "error":
            raise failure_told_in_stream(chunk, {})
        _raise_told_error(chunk)
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            raise invalid("choice_not_object")
        usage = reported_usage(chunk, choice)
        self.usage = _usage(usage) or self.usage
        if choices is None and not usage:
            raise invalid("choices_missing")
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            raise invalid("delta_not_object")
        yield from self._content(delta)
        yield from self._tool_calls(delta.get("tool_calls"))
        if choice.get("finish_reason"):
            self.finish_reason = finish_reason_of(choice["finish_reason"], _FINISH)

    def finish(self) -> Iterator[ModelEvent]:
        """Yield what is still held back, the ends of tool calls and the usage."""
        if rest := self._thinking.rest():
            yield thinking_delta(rest)
        if rest := self._text.rest():
            yield from self._tags.feed(rest) if self._tags else (text_delta(rest),)
        if self._tags:
            yield from self._tags.rest()
        yield from self._calls.end()
        if self.usage:
            yield usage_event(self.usage)

    def _content(self, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        if thinking := self._thinking.feed(reasoning_of(delta)):
            yield thinking_delta(thinking)
        content = delta.get("content")
        if isinstance(content, list):
            # Pieces of a kind; thinking is one of the kinds.
            thought = "".join(map(_thought_of, content))
            if thought:
                yield thinking_delta(thought)
        text = self._text.feed(_text_of(content) or _text_of(delta.get("refusal")))
        if text:
            yield from self._tags.feed(text) if self._tags else (text_delta(text),)

    def _tool_calls(self, pieces: Any) -> Iterator[ModelEvent]:
        for piece in pieces if isinstance(pieces, list) else []:
            if not isinstance(piece, dict):
                raise invalid("tool_call_not_object")
            _keep_signature(piece, self._call, self._signed)
            name, arguments = _function(piece)
            key = self._calls.key_of(piece.get("index"), piece.get("id"), name)
            yield from self._calls.add(key, call_id=piece.get("id"), name=name, arguments=arguments)


def _raise_told_error(answer: dict[str, Any]) -> None:
    error = told_error(answer)
    if error is not None:
        raise failure_told_in_stream(error, {})


def _keep_signature(piece: dict[str, Any], call: ChatCall, signed: OpaqueState) -> None:
    """Hold what a vendor wants back with a call; it comes with the piece that gives the id."""
    if isinstance(piece.get("id"), str) and isinstance(piece.get(SIGNATURE_FIELD), dict):
        signed.keep(call.origin, piece["id"], {SIGNATURE_FIELD: piece[SIGNATURE_FIELD]})


def _function(piece: dict[str, Any]) -> tuple[Any, Any]:
    function = piece.get("function")
    return (
        (function.get("name"), function.get("arguments"))
        if isinstance(function, dict)
        else (None, None)
    )


def _usage(told: Mapping[str, Any]) -> TokenUsage | None:
    return token_usage(
        told.get("prompt_tokens"), told.get("completion_tokens"), told.get("total_tokens")
    )


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _thought_of(part: Any) -> str:
    thinking = part.get("thinking") if isinstance(part, dict) else None
    return _text_of(thinking)


def _told_apart(content: str) -> tuple[str, str]:
    """Return the thinking and the answer of a text that may begin with tags."""
    tags = ThinkTags()
    events = [*tags.feed(content), *tags.rest()]
    texts = {
        name: "".join(event.data["text"] for event in events if event.event == name)
        for name in ("ThinkingDelta", "TextDelta")
    }
    return texts["ThinkingDelta"], texts["TextDelta"]
