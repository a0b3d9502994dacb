"""Puts the pieces of a provider's stream together into model events."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.providers.failures import UpstreamError
from sidecar.providers.protocols.tool_names import ToolNames
from sidecar.providers.schemas.model_call import ModelEvent, TokenUsage, ToolCall

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_REPLACEMENT: Final = "\ufffd"


def new_tool_call_id() -> str:
    """Return an id for a call of a provider that gives none."""
    return f"call_{secrets.token_hex(12)}"


def text_delta(text: str) -> ModelEvent:
    """Return a piece of the answer."""
    return ModelEvent("TextDelta", {"text": text})


def thinking_delta(text: str) -> ModelEvent:
    """Return a piece of the model's thinking."""
    return ModelEvent("ThinkingDelta", {"text": text})


def usage_event(usage: TokenUsage) -> ModelEvent:
    """Return what the provider reported."""
    return ModelEvent(
        "Usage",
        {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        },
    )


def token_usage(
    input_tokens: Any, output_tokens: Any, total_tokens: Any = None
) -> TokenUsage | None:
    """Return reported tokens, None unless both sides were; their sum needs no guess."""
    if not (_is_count(input_tokens) and _is_count(output_tokens)):
        return None
    total = total_tokens if _is_count(total_tokens) else input_tokens + output_tokens
    return TokenUsage(input_tokens, output_tokens, total)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class WholeCharacters:
    """Joins characters whose halves came in two pieces: JSON can carry half of one."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Return *text* with what was held back, without a half at its end."""
        if not self._half and text.isascii():
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return whole_characters(text)

    def rest(self) -> str:
        """Return a sign for a half whose other half never came."""
        half, self._half = self._half, ""
        return _REPLACEMENT if half else ""


def whole_characters(text: str) -> str:
    """Return *text* with halves joined, and a sign for a half without its other half: it can be stored and sent."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class ThinkTags:
    """Tells thinking from the answer where a model writes it into its text, between ``<think>`` tags.

    Only tags at the very beginning count: later ones are what the answer is about.
    """

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, text: str) -> Iterator[ModelEvent]:
        """Yield what can be told by now; a tag that may still become one is held back."""
        self._held += text
        if self._state == "start":
            self._begin()
        if self._state == "opened" and self._held:
            self._state, self._held = "thinking", self._held.removeprefix("\n")
        if self._state == "thinking":
            yield from self._think()
        if self._state == "gap":
            self._held = self._held.lstrip("\n")
            self._state = "answer" if self._held else "gap"
        if self._state == "answer" and self._held:
            yield text_delta(self._held)
            self._held = ""

    def rest(self) -> Iterator[ModelEvent]:
        """Yield what was held back, at the end of the stream."""
        held, self._held = self._held, ""
        if held:
            yield thinking_delta(held) if self._state == "thinking" else text_delta(held)

    def _begin(self) -> None:
        seen = self._held.lstrip()
        if seen.startswith(_OPEN):
            self._state, self._held = "opened", seen[len(_OPEN) :]
        elif not _OPEN.startswith(seen):
            self._state = "answer"

    def _think(self) -> Iterator[ModelEvent]:
        thought, closed, answer = self._held.partition(_CLOSE)
        if closed:
            if thought:
                yield thinking_delta(thought)
            # The line breaks after the tag may come in the next piece.
            self._state, self._held = "gap", answer
            return
        kept = _possible_beginning(thought, _CLOSE)
        if len(thought) > kept:
            yield thinking_delta(thought[: len(thought) - kept])
        self._held = thought[len(thought) - kept :]


def _possible_beginning(text: str, tag: str) -> int:
    """Return how many characters at the end of *text* may be the beginning of *tag*."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0


@dataclass(slots=True)
class _Call:
    call_id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    characters: WholeCharacters = field(default_factory=WholeCharacters)
    started: bool = False


class ToolCallParts:
    """Gathers tool calls from their pieces, in whatever order and completeness these come.

    Pieces belong together by a key that the protocol gives (an index, an id). A call starts with its
    first arguments, or at its end: until then its name may still grow.
    """

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._calls: dict[Any, _Call] = {}
        self._last: Any = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    def key_of(self, index: Any, call_id: Any, name: Any = None) -> Any:
        """Return the key of a piece that may lack index, id or both.

        An index that comes again with another id and a name is another call: some give each the same.
        """
        call_id = call_id if isinstance(call_id, str) else None
        if ("id", call_id) in self._calls:
            return ("id", call_id)
        if isinstance(index, int):
            there = self._calls.get(("index", index))
            another = there and there.name and name and call_id and there.call_id != call_id
            if not another:
                return ("index", index)
        if call_id:
            for key, call in self._calls.items():
                if call.call_id == call_id:
                    return key
            return ("id", call_id)
        return self._last if self._last is not None else ("index", 0)

    def add(
        self, key: Any, *, call_id: Any = None, name: Any = None, arguments: Any = None
    ) -> Iterator[ModelEvent]:
        """Take a piece and yield the events that it makes possible."""
        self._last = key
        call = self._calls.setdefault(key, _Call())
        if call.call_id is None and isinstance(call_id, str) and call_id:
            call.call_id = whole_characters(call_id)
        if isinstance(name, str) and name and not call.started and name != call.name:
            # Some repeat the whole name in each piece, some cut it into pieces.
            call.name += whole_characters(name)
        piece = _as_text(arguments)
        if not piece:
            return
        if not call.name:
            # The arguments came before the name; they are told with it.
            call.arguments.append(piece)
            return
        yield from self._start(call)
        yield from self._tell(call, piece)

    def start(self, key: Any) -> Iterator[ModelEvent]:
        """Start a call whose name is known to be whole."""
        yield from self._start(self._calls[key])

    def settle(self, key: Any, arguments: Any) -> Iterator[ModelEvent]:
        """Take a call's whole arguments, as some tell them once more; they count if no piece came."""
        call = self._calls.get(key)
        if call is not None and not call.arguments:
            yield from self.add(key, arguments=arguments)

    def end(self) -> Iterator[ModelEvent]:
        """End the calls, in the order in which they began.

        Raises ``PROVIDER_INVALID_RESPONSE`` for a call without a name or whose arguments are no object.
        """
        for call in self._calls.values():
            yield from self._start(call)
            if rest := call.characters.rest():
                yield from self._tell(call, rest)
            yield ModelEvent(
                "ToolCallEnd",
                {
                    "tool_call_id": call.call_id,
                    "name": self._names.ours(call.name),
                    "arguments": arguments_object("".join(call.arguments)),
                    "status": "completed",
                },
            )

    def _start(self, call: _Call) -> Iterator[ModelEvent]:
        if call.started:
            return
        if not call.name:
            raise UpstreamError("PROVIDER_INVALID_RESPONSE", {"reason": "tool_call_without_name"})
        call.started = True
        call.call_id = call.call_id or new_tool_call_id()
        yield ModelEvent(
            "ToolCallStart", {"tool_call_id": call.call_id, "name": self._names.ours(call.name)}
        )
        early, call.arguments = "".join(call.arguments), []
        if early:
            yield from self._tell(call, early)

    @staticmethod
    def _tell(call: _Call, piece: str) -> Iterator[ModelEvent]:
        piece = call.characters.feed(piece)
        if not piece:
            return
        call.arguments.append(piece)
        yield ModelEvent("ToolCallDelta", {"tool_call_id": call.call_id, "arguments_delta": piece})


def _as_text(arguments: Any) -> str:
    """Return a piece of arguments as text; some send the finished object instead."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def arguments_object(text: str) -> dict[str, Any]:
    """Return a call's arguments; empty text is the empty object.

    Raises ``PROVIDER_INVALID_RESPONSE`` for anything but a JSON object.
    """
    if not text.strip():
        return {}
    # An empty object sent as a beginning, with the real one after it.
    if text.startswith("{}") and text[2:].lstrip().startswith("{"):
        text = text[2:]
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        written = json.dumps(value, ensure_ascii=False)
        if not written.isascii():
            # Half a character could neither be stored nor sent on.
            value = json.loads(whole_characters(written))
    except (ValueError, RecursionError) as error:
        reason = {"reason": "tool_arguments_not_json"}
        raise UpstreamError("PROVIDER_INVALID_RESPONSE", reason) from error
    if not isinstance(value, dict):
        raise UpstreamError("PROVIDER_INVALID_RESPONSE", {"reason": "tool_arguments_not_object"})
    return value


def _refuse_constant(name: str) -> None:
    """Refuse what Python reads and JSON doesn't have."""
    raise ValueError(name)


def finished_call(call_id: Any, name: Any, arguments: Any, names: ToolNames) -> ToolCall:
    """Return a call that came in one piece; raises as :meth:`ToolCallParts.end`."""
    if not isinstance(name, str) or not name:
        raise UpstreamError("PROVIDER_INVALID_RESPONSE", {"reason": "tool_call_without_name"})
    known = whole_characters(call_id) if isinstance(call_id, str) else ""
    name = names.ours(whole_characters(name))
    return ToolCall(known or new_tool_call_id(), name, arguments_object(_as_text(arguments)))
