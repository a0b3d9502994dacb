"""OpenAI Responses."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sidecar.providers.failures import failure_told_in_stream
from sidecar.providers.protocols.adapter import ChatCall, invalid, model_info
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
from sidecar.providers.protocols.profiles import Profile
from sidecar.providers.schemas.model_call import (
    FinishReason,
    Message,
    ModelEvent,
    ModelReply,
    TokenUsage,
)
from sidecar.providers.schemas.wire import ModelInfo

_INCOMPLETE: Final[Mapping[str, FinishReason]] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
_TEXT: Final = ("response.output_text.delta", "response.refusal.delta")
_THINKING: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS: Final = ("response.completed", "response.incomplete")


class OpenAiResponses:
    """The adapter."""

    protocol = "openai_responses"
    chat_path = "/responses"
    models_path = "/models"
    stream_type = "text/event-stream"

    def headers(self, secret: str | None) -> Mapping[str, str]:
        """Return the bearer token, if there is one."""
        return {"Authorization": f"Bearer {secret}"} if secret else {}

    def chat_body(self, call: ChatCall, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request; the vendor is asked not to keep it."""
        request = call.request
        body: dict[str, Any] = {
            "model": call.model,
            "input": [item for message in request.messages for item in _items(message, call)],
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": call.names.sent(tool.name),
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return {**body, "store": False, "stream": stream}

    def reader(self) -> SseReader:
        """Return a reader for one streamed answer."""
        return SseReader()

    def decoder(self, call: ChatCall) -> "ResponsesDecoder":
        """Return a decoder for one streamed answer."""
        return ResponsesDecoder(call)

    def reply(self, call: ChatCall, answer: dict[str, Any]) -> ModelReply:
        """Read an answer that came in one piece."""
        if answer.get("error") or answer.get("status") == "failed":
            raise failure_told_in_stream(answer, {})
        output = answer.get("output")
        if not isinstance(output, list):
            raise invalid("output_missing")
        items = [item for item in output if isinstance(item, dict)]
        calls = tuple(
            finished_call(item.get("call_id"), item.get("name"), item.get("arguments"), call.names)
            for item in items
            if item.get("type") == "function_call"
        )
        whole = WholeCharacters()
        thinking = "\n\n".join(filter(None, map(_thinking_of, items)))
        return ModelReply(
            content=whole.feed("".join(map(_text_of, items))) + whole.rest(),
            reasoning_content=(whole.feed(thinking) + whole.rest()) or None,
            tool_calls=calls,
            usage=_usage(answer),
            finish_reason=_finish_reason(answer, has_calls=bool(calls)),
        )

    def models(self, answer: dict[str, Any], profile: Profile) -> list[ModelInfo]:
        """Read a list of models."""
        items = answer.get("data")
        if not isinstance(items, list):
            raise invalid("models_missing")
        return [
            model_info(item["id"], profile.model_facts(item))
            for item in items
            if isinstance(item, dict) and isinstance(item.get("id"), str) and item["id"]
        ]


def _items(message: Message, call: ChatCall) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message.tool_call_id,
            "output": message.content,
        }
        return
    if message.role == "assistant":
        # Text in parts is for items that carry the ids of an answer, which nobody keeps.
        if message.content or not message.tool_calls:
            yield {"type": "message", "role": "assistant", "content": message.content}
    else:
        content: list[dict[str, Any]] = []
        if message.content or not message.images:
            content.append({"type": "input_text", "text": message.content})
        content += [
            {"type": "input_image", "image_url": url, "detail": "auto"} for url in message.images
        ]
        yield {"type": "message", "role": message.role, "content": content}
    for made in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": made.tool_call_id,
            "name": call.names.sent(made.name),
            "arguments": made.arguments_text(),
        }


class ResponsesDecoder:
    """Reads the events of one answer."""

    def __init__(self, call: ChatCall) -> None:
        self.usage: TokenUsage | None = None
        self.finish_reason: FinishReason | None = None
        self.ended = False
        self._text = WholeCharacters()
        self._thinking = WholeCharacters()
        self._thought = False
        self._calls = ToolCallParts(call.names)
        self._ids: dict[Any, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the event that ends every answer was there."""
        return self.ended

    def decode(self, frame: Frame) -> Iterator[ModelEvent]:
        """Yield the events of an event."""
        if frame.data.strip() in ("", "[DONE]"):
            return
        told = frame.json()
        kind = _kind_of(frame, told)
        if kind in _TEXT:
            if text := self._text.feed(_delta(told)):
                yield text_delta(text)
        elif kind in _THINKING:
            self._thought = True
            if text := self._thinking.feed(_delta(told)):
                yield thinking_delta(text)
        elif kind == "response.reasoning_summary_part.added" and self._thought:
            yield thinking_delta("\n\n")
        elif kind.startswith(("response.output_item.", "response.function_call_arguments.")):
            yield from self._item(kind, told)
        elif kind in _ENDS:
            self._end(told.get("response"))

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the ends of tool calls and the usage."""
        if rest := self._thinking.rest():
            yield thinking_delta(rest)
        if rest := self._text.rest():
            yield text_delta(rest)
        yield from self._calls.end()
        if self.usage:
            yield usage_event(self.usage)

    def _item(self, kind: str, told: dict[str, Any]) -> Iterator[ModelEvent]:
        item = told.get("item")
        if isinstance(item, dict) and item.get("type") != "function_call":
            return
        key = self._key_of(told)
        if isinstance(item, dict):
            yield from self._calls.add(key, call_id=item.get("call_id"), name=item.get("name"))
            yield from self._calls.start(key)
            if kind.endswith(".done"):
                yield from self._calls.settle(key, item.get("arguments"))
        elif kind.endswith(".delta"):
            yield from self._calls.add(key, arguments=_delta(told))
        else:
            yield from self._calls.settle(key, told.get("arguments"))

    def _key_of(self, told: dict[str, Any]) -> Any:
        """Return what an item goes by: its id, or its place where a server gives only that."""
        item, index = told.get("item"), told.get("output_index")
        item_id = told.get("item_id") or (item.get("id") if isinstance(item, dict) else None)
        place = ("place", index if isinstance(index, int) else None)
        if not isinstance(item_id, str):
            return self._ids.get(place, place)
        self._ids.setdefault(place, item_id)
        return item_id

    def _end(self, response: Any) -> None:
        if not isinstance(response, dict):
            raise invalid("response_missing")
        self.usage = _usage(response)
        self.finish_reason = _finish_reason(response, has_calls=bool(self._calls))
        self.ended = True


def _kind_of(frame: Frame, told: dict[str, Any]) -> str:
    """Return the type of an event; raises what an event of failure tells."""
    kind = told.get("type") or frame.event
    if kind in ("error", "response.failed") or (kind is None and told.get("error")):
        response = told.get("response")
        raise failure_told_in_stream(response if isinstance(response, dict) else told, {})
    if not isinstance(kind, str):
        raise invalid("event_without_type")
    return kind


def _delta(told: dict[str, Any]) -> str:
    delta = told.get("delta")
    if not isinstance(delta, str):
        raise invalid("delta_missing")
    return delta


def _usage(response: Mapping[str, Any]) -> TokenUsage | None:
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    return token_usage(
        usage.get("input_tokens"), usage.get("output_tokens"), usage.get("total_tokens")
    )


def _finish_reason(response: Mapping[str, Any], *, has_calls: bool) -> FinishReason:
    details = response.get("incomplete_details")
    if response.get("status") == "incomplete" or details:
        reason = details.get("reason") if isinstance(details, dict) else None
        return _INCOMPLETE.get(str(reason), "other")
    return "tool_calls" if has_calls else "stop"


def _texts(parts: Any, *names: str) -> str:
    found = (
        part.get(name)
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict)
        for name in names
    )
    return "".join(text for text in found if isinstance(text, str))


def _text_of(item: dict[str, Any]) -> str:
    return _texts(item.get("content"), "text", "refusal") if item.get("type") == "message" else ""


def _thinking_of(item: dict[str, Any]) -> str:
    if item.get("type") != "reasoning":
        return ""
    return _texts(item.get("summary"), "text") or _texts(item.get("content"), "text")
