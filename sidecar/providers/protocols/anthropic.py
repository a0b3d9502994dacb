"""Anthropic Messages."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sidecar.providers.failures import failure_told_in_stream
from sidecar.providers.protocols.adapter import (
    ChatCall,
    finish_reason_of,
    image_parts,
    invalid,
    model_info,
)
from sidecar.providers.protocols.event_parts import (
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

VERSION: Final = "2023-06-01"
# The protocol demands a limit. Models older than this vendor's 3.5 refuse more than they can write.
_OUTPUT_LIMIT: Final = 8192
# Where the vendor tells what a model can write, an answer may be this long unasked.
_LONG_OUTPUT_LIMIT: Final = 16_384
_OLD_OUTPUT_LIMIT: Final = 4096
_OLD_MODELS: Final = ("claude-2", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku")

_FINISH: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class Anthropic:
    """The adapter."""

    protocol = "anthropic_messages"
    chat_path = "/messages"
    models_path = "/models?limit=1000"
    stream_type = "text/event-stream"

    def __init__(self) -> None:
        self._signed = OpaqueState()

    def headers(self, secret: str | None) -> Mapping[str, str]:
        """Return the key, if there is one, and the protocol's version."""
        version = {"anthropic-version": VERSION}
        return {**version, "x-api-key": secret} if secret else version

    def chat_body(self, call: ChatCall, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request."""
        request = call.request
        system = [message.content for message in request.messages if message.role == "system"]
        body: dict[str, Any] = {
            "model": call.model,
            "max_tokens": request.max_output_tokens or _limit(call),
            "messages": self._turns(call),
        }
        if any(system):
            body["system"] = "\n\n".join(filter(None, system))
        tools = [
            {
                "name": call.names.sent(tool.name),
                "description": tool.description,
                "input_schema": tool.parameters,
            }
            for tool in request.tools
        ]
        if tools:
            body["tools"] = tools
        elif called := _called(call):
            # Earlier calls need their tools declared, also where none may be called any more.
            schema = {"type": "object"}
            body["tools"] = [{"name": name, "input_schema": schema} for name in called]
            body["tool_choice"] = {"type": "none"}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body["stream"] = stream
        return body

    def reader(self) -> SseReader:
        """Return a reader for one streamed answer."""
        return SseReader()

    def decoder(self, call: ChatCall) -> "AnthropicDecoder":
        """Return a decoder for one streamed answer."""
        return AnthropicDecoder(call, self._signed)

    def reply(self, call: ChatCall, answer: dict[str, Any]) -> ModelReply:
        """Read an answer that came in one piece."""
        if answer.get("type") == "error" or answer.get("error"):
            raise failure_told_in_stream(answer, {})
        content = answer.get("content")
        if not isinstance(content, list):
            raise invalid("content_missing")
        blocks = [block for block in content if isinstance(block, dict)]
        whole = WholeCharacters()
        thinking = whole.feed(_joined(blocks, "thinking")) + whole.rest()
        signed = [block for block in blocks if block.get("type") in _SIGNED]
        if thinking and signed:
            self._signed.keep(call.origin, thinking, signed)
        return ModelReply(
            content=whole.feed(_joined(blocks, "text")) + whole.rest(),
            reasoning_content=thinking or None,
            tool_calls=tuple(
                finished_call(block.get("id"), block.get("name"), block.get("input"), call.names)
                for block in blocks
                if block.get("type") == "tool_use"
            ),
            usage=_usage(_object(answer.get("usage"))),
            finish_reason=finish_reason_of(answer.get("stop_reason"), _FINISH),
        )

    def models(self, answer: dict[str, Any], profile: Profile) -> list[ModelInfo]:
        """Read a list of models."""
        del profile
        items = answer.get("data")
        if not isinstance(items, list):
            raise invalid("models_missing")
        return [
            model_info(item["id"], _facts(item))
            for item in items
            if isinstance(item, dict) and isinstance(item.get("id"), str) and item["id"]
        ]

    def _turns(self, call: ChatCall) -> list[dict[str, Any]]:
        """Return the turns: user and assistant alternate, and results of tools are the user's."""
        turns: list[dict[str, Any]] = []
        for message in call.request.messages:
            if message.role == "system":
                continue
            role = "assistant" if message.role == "assistant" else "user"
            blocks = self._blocks(message, call)
            if not blocks:
                continue
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"] += blocks
            else:
                turns.append({"role": role, "content": blocks})
        return turns

    def _blocks(self, message: Message, call: ChatCall) -> list[dict[str, Any]]:
        if message.role == "tool":
            # Empty text is refused as a block of its own, and left out here.
            content = {"content": message.content} if message.content else {}
            return [{"type": "tool_result", "tool_use_id": message.tool_call_id, **content}]
        blocks: list[dict[str, Any]] = []
        if message.reasoning_content:
            blocks += self._signed.of(call.origin, message.reasoning_content) or []
        for uri in message.images:
            media_type, data = image_parts(uri)
            source = {"type": "base64", "media_type": media_type, "data": data}
            blocks.append({"type": "image", "source": source})
        if message.content.strip():
            blocks.append({"type": "text", "text": message.content})
        blocks += [
            {
                "type": "tool_use",
                "id": made.tool_call_id,
                "name": call.names.sent(made.name),
                "input": made.arguments,
            }
            for made in message.tool_calls
        ]
        return blocks


_SIGNED: Final = ("thinking", "redacted_thinking")


class AnthropicDecoder:
    """Reads the events of one answer."""

    def __init__(self, call: ChatCall, signed: OpaqueState) -> None:
        self.finish_reason: FinishReason | None = None
        self.ended = False
        self._signed = signed
        self._origin = call.origin
        self._text = WholeCharacters()
        self._thinking = WholeCharacters()
        self._calls = ToolCallParts(call.names)
        self._told_usage: dict[str, Any] = {}
        self._blocks: dict[Any, dict[str, Any]] = {}

    @property
    def usage(self) -> TokenUsage | None:
        """What was reported so far: one side at the beginning, the other at the end."""
        return _usage(self._told_usage) if self.finish_reason else None

    @property
    def complete(self) -> bool:
        """Whether the event that ends every answer was there."""
        return self.ended

    def decode(self, frame: Frame) -> Iterator[ModelEvent]:
        """Yield the events of an event."""
        if not frame.data.strip():
            return
        told = frame.json()
        kind = told.get("type") or frame.event
        if kind == "error" or (kind is None and told.get("error")):
            raise failure_told_in_stream(told, {})
        if kind == "message_start":
            self._told_usage |= _object(_object(told.get("message")).get("usage"))
        elif kind == "content_block_start":
            yield from self._start(_index(told), told.get("content_block"))
        elif kind == "content_block_delta":
            yield from self._delta(_index(told), told.get("delta"))
        elif kind == "message_delta":
            self._told_usage |= {
                name: value
                for name, value in _object(told.get("usage")).items()
                if value is not None
            }
            reason = _object(told.get("delta")).get("stop_reason")
            if reason:
                self.finish_reason = finish_reason_of(reason, _FINISH)
        elif kind == "message_stop":
            self.ended = True
        elif not isinstance(kind, str):
            raise invalid("event_without_type")

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the ends of tool calls and the usage."""
        if rest := self._thinking.rest():
            yield thinking_delta(rest)
        if rest := self._text.rest():
            yield text_delta(rest)
        yield from self._calls.end()
        blocks = [block for block in self._blocks.values() if block["type"] in _SIGNED]
        if thinking := _joined(blocks, "thinking"):
            self._signed.keep(self._origin, thinking, blocks)
        usage = self.usage
        if usage:
            yield usage_event(usage)

    def _start(self, index: Any, block: Any) -> Iterator[ModelEvent]:
        if not isinstance(block, dict):
            raise invalid("content_block_missing")
        kind = block.get("type")
        if kind == "tool_use":
            yield from self._calls.add(index, call_id=block.get("id"), name=block.get("name"))
            yield from self._calls.start(index)
            if block.get("input"):
                yield from self._calls.add(index, arguments=block["input"])
        elif kind in _SIGNED:
            self._blocks[index] = {**block, "thinking": ""} if kind == "thinking" else dict(block)
            yield from self._delta(
                index, {"type": "thinking_delta", "thinking": block.get("thinking") or ""}
            )
        elif kind == "text" and block.get("text"):
            yield from self._delta(index, {"type": "text_delta", "text": block["text"]})

    def _delta(self, index: Any, delta: Any) -> Iterator[ModelEvent]:
        if not isinstance(delta, dict):
            raise invalid("delta_missing")
        kind = delta.get("type")
        if kind == "text_delta":
            if text := self._text.feed(_required(delta, "text")):
                yield text_delta(text)
        elif kind == "thinking_delta":
            if text := self._thinking.feed(_required(delta, "thinking")):
                block = self._blocks.setdefault(index, {"type": "thinking", "thinking": ""})
                block["thinking"] = block.get("thinking", "") + text
                yield thinking_delta(text)
        elif kind == "signature_delta" and index in self._blocks:
            self._blocks[index]["signature"] = _required(delta, "signature")
        elif kind == "input_json_delta":
            yield from self._calls.add(index, arguments=_required(delta, "partial_json"))


def _index(told: dict[str, Any]) -> int | None:
    index = told.get("index")
    return index if isinstance(index, int) else None


def _required(delta: dict[str, Any], name: str) -> str:
    value = delta.get(name)
    if not isinstance(value, str):
        raise invalid(f"{name}_missing")
    return value


def _limit(call: ChatCall) -> int:
    if call.max_output_tokens is not None:
        return min(call.max_output_tokens, _LONG_OUTPUT_LIMIT)
    return _OLD_OUTPUT_LIMIT if call.model.startswith(_OLD_MODELS) else _OUTPUT_LIMIT


def _called(call: ChatCall) -> list[str]:
    names = (made.name for message in call.request.messages for made in message.tool_calls)
    return sorted({call.names.sent(name) for name in names})


def _usage(told: Mapping[str, Any]) -> TokenUsage | None:
    """Return the usage; what was read from a cache or written to it was input as well."""
    given = told.get("input_tokens")
    if isinstance(given, int):
        cached = (told.get("cache_creation_input_tokens"), told.get("cache_read_input_tokens"))
        given += sum(count for count in cached if isinstance(count, int))
    return token_usage(given, told.get("output_tokens"))


def _facts(item: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "display_name": item.get("display_name"),
        "context_window": item.get("max_input_tokens"),
        "max_output_tokens": item.get("max_tokens"),
    }
    told = _object(item.get("capabilities"))
    if told:
        # Tool use isn't among what is told, so it isn't claimed.
        found: list[Capability] = ["chat", "streaming"]
        if _object(told.get("image_input")).get("supported") is True:
            found.append("vision")
        if _object(told.get("thinking")).get("supported") is True:
            found.append("reasoning")
        facts["capabilities"] = found
    return facts


def _joined(blocks: list[dict[str, Any]], kind: str) -> str:
    texts = (block.get(kind) for block in blocks if block.get("type") == kind)
    return "".join(text for text in texts if isinstance(text, str))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
