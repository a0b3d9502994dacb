"""Chat Completions as OpenAI documents it, and as reasoning servers extend it."""

import json
from typing import Any

from tests.fakes.upstream import Answer, Turn, sse

PROVIDER_TYPE = "openai_compatible"
PATH = "/chat/completions"
MODELS_PATH = "/models"
CAPABILITIES = ("chat", "streaming", "tool_calling", "reasoning", "vision")


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def _usage(turn: Turn) -> dict[str, int]:
    assert turn.usage
    given, made = turn.usage
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def frames(turn: Turn) -> list[Any]:
    """The chunks of a streamed answer, without the closing line."""
    found: list[Any] = [_chunk({"role": "assistant", "content": ""})]
    found += [_chunk({"reasoning_content": piece}) for piece in turn.thinking]
    found += [_chunk({"content": piece}) for piece in turn.text]
    for index, call in enumerate(turn.calls):
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.call_id, "type": "function", "function": function}
        found.append(_chunk({"tool_calls": [opening]}))
    # The pieces of parallel calls may come in any order; here they take turns.
    most = max((len(call.arguments) for call in turn.calls), default=0)
    for at in range(most):
        for index, call in enumerate(turn.calls):
            if at < len(call.arguments):
                piece = {"index": index, "function": {"arguments": call.arguments[at]}}
                found.append(_chunk({"tool_calls": [piece]}))
    found.append(_chunk({}, turn.why))
    if turn.usage:
        found.append({**_chunk({}), "choices": [], "usage": _usage(turn)})
    return found


def stream(turn: Turn) -> Answer:
    """A streamed answer."""
    return Answer(pieces=[sse(*frames(turn), done=True)], content_type="text/event-stream")


def whole(turn: Turn) -> Answer:
    """An answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(turn.text) or None}
    if turn.thinking:
        message["reasoning_content"] = "".join(turn.thinking)
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(call.arguments)},
            }
            for call in turn.calls
        ]
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": turn.why}],
    }
    if turn.usage:
        body["usage"] = _usage(turn)
    return Answer.of_json(body)


def models(*names: str) -> Answer:
    """A list of models, with nothing but their names."""
    items = [{"id": name, "object": "model", "owned_by": "somebody"} for name in names]
    return Answer.of_json({"object": "list", "data": items})


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    """An error."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Answer.of_json({"error": error}, status, **headers)


def error_in_stream(turn: Turn, code: str, message: str) -> Answer:
    """An answer that begins and then tells of an error."""
    told = json.loads(json.dumps({"error": {"message": message, "code": code}}))
    begun = [frame for frame in frames(turn) if frame["choices"]][:-1]
    return Answer(pieces=[sse(*begun, told)], content_type="text/event-stream")


def sent_tools(body: dict[str, Any]) -> list[str]:
    """The names of the tools in a request."""
    return [tool["function"]["name"] for tool in body.get("tools", [])]
