"""Ollama's native chat as documented."""

import json
from typing import Any

from tests.fakes.upstream import Answer, Turn

PROVIDER_TYPE = "ollama"
PATH = "/api/chat"
MODELS_PATH = "/api/tags"
CAPABILITIES = ("chat", "streaming", "tool_calling", "reasoning", "vision")


def _line(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": said, **more}


def _calls(turn: Turn) -> list[dict[str, Any]]:
    # Arguments come as an object; a test's broken ones can only come as text.
    return [
        {"function": {"name": call.name, "arguments": _object_or_text("".join(call.arguments))}}
        for call in turn.calls
    ]


def _object_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _end(turn: Turn) -> dict[str, Any]:
    reason = "length" if turn.finish == "length" else "stop"
    ended: dict[str, Any] = {"done": True, "done_reason": reason, "total_duration": 1}
    if turn.usage:
        ended |= {"prompt_eval_count": turn.usage[0], "eval_count": turn.usage[1]}
    return ended


def frames(turn: Turn) -> list[dict[str, Any]]:
    """The lines of a streamed answer."""
    found = [_line({"thinking": piece}, done=False) for piece in turn.thinking]
    found += [_line({"content": piece}, done=False) for piece in turn.text]
    found += [_line({"tool_calls": [call]}, done=False) for call in _calls(turn)]
    return [*found, _line({}, **_end(turn))]


def _ndjson(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def stream(turn: Turn) -> Answer:
    """A streamed answer."""
    return Answer(pieces=[_ndjson(frames(turn))], content_type="application/x-ndjson")


def whole(turn: Turn) -> Answer:
    """An answer in one piece."""
    message: dict[str, Any] = {"content": "".join(turn.text)}
    if turn.thinking:
        message["thinking"] = "".join(turn.thinking)
    if turn.calls:
        message["tool_calls"] = _calls(turn)
    return Answer.of_json(_line(message, **_end(turn)))


def models(*names: str) -> Answer:
    """A list of models, with nothing but their names."""
    return Answer.of_json({"models": [{"name": name, "model": name} for name in names]})


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    """An error: a text alone."""
    return Answer.of_json({"error": f"{code}: {message}"}, status, **headers)


def error_in_stream(turn: Turn, code: str, message: str) -> Answer:
    """An answer that begins and then tells of an error."""
    lines = [*frames(turn)[:-1], {"error": f"{code}: {message}"}]
    return Answer(pieces=[_ndjson(lines)], content_type="application/x-ndjson")


def sent_tools(body: dict[str, Any]) -> list[str]:
    """The names of the tools in a request."""
    return [tool["function"]["name"] for tool in body.get("tools", [])]
