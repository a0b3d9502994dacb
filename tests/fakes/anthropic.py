"""Anthropic Messages as documented."""

import json
from typing import Any

from tests.fakes.upstream import Answer, Turn, sse

PROVIDER_TYPE = "anthropic"
PATH = "/messages"
MODELS_PATH = "/models?limit=1000"
CAPABILITIES = ("chat", "streaming", "tool_calling", "reasoning", "vision")
SIGNATURE = "c2lnbmVk"

_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _delta(index: int, kind: str, name: str, value: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: value}}


def frames(turn: Turn) -> list[dict[str, Any]]:
    """The events of a streamed answer."""
    # This protocol always counts; a turn without usage leaves both sides out, as gateways do.
    begun: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    if turn.usage:
        begun["usage"] = {"input_tokens": turn.usage[0], "output_tokens": 1}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    index = -1
    if turn.thinking:
        index += 1
        block = {"type": "thinking", "thinking": "", "signature": ""}
        found.append({"type": "content_block_start", "index": index, "content_block": block})
        found += [_delta(index, "thinking_delta", "thinking", piece) for piece in turn.thinking]
        found.append(_delta(index, "signature_delta", "signature", SIGNATURE))
        found.append({"type": "content_block_stop", "index": index})
    if turn.text:
        index += 1
        block = {"type": "text", "text": ""}
        found.append({"type": "content_block_start", "index": index, "content_block": block})
        found += [_delta(index, "text_delta", "text", piece) for piece in turn.text]
        found.append({"type": "content_block_stop", "index": index})
    for call in turn.calls:
        index += 1
        opened = {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
        found.append({"type": "content_block_start", "index": index, "content_block": opened})
        found += [
            _delta(index, "input_json_delta", "partial_json", piece)
            for piece in ("", *call.arguments)
        ]
        found.append({"type": "content_block_stop", "index": index})
    ended: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": _STOP[turn.why], "stop_sequence": None},
    }
    if turn.usage:
        ended["usage"] = {"output_tokens": turn.usage[1]}
    return [*found, ended, {"type": "message_stop"}]


def stream(turn: Turn) -> Answer:
    """A streamed answer."""
    return Answer(pieces=[sse(*frames(turn), named=True)], content_type="text/event-stream")


def whole(turn: Turn) -> Answer:
    """An answer in one piece."""
    content: list[dict[str, Any]] = []
    if turn.thinking:
        content.append(
            {"type": "thinking", "thinking": "".join(turn.thinking), "signature": SIGNATURE}
        )
    if turn.text:
        content.append({"type": "text", "text": "".join(turn.text)})
    content += [
        {
            "type": "tool_use",
            "id": call.call_id,
            "name": call.name,
            "input": json.loads("".join(call.arguments)),
        }
        for call in turn.calls
    ]
    body: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": _STOP[turn.why],
    }
    if turn.usage:
        body["usage"] = {"input_tokens": turn.usage[0], "output_tokens": turn.usage[1]}
    return Answer.of_json(body)


def models(*names: str) -> Answer:
    """A list of models, with nothing but their names."""
    items = [{"type": "model", "id": name, "created_at": "2026-01-01T00:00:00Z"} for name in names]
    return Answer.of_json({"data": items, "has_more": False})


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    """An error."""
    error = {"type": "error", "error": {"type": code, "message": message}}
    return Answer.of_json(error, status, **headers)


def error_in_stream(turn: Turn, code: str, message: str) -> Answer:
    """An answer that begins and then tells of an error."""
    told = {"type": "error", "error": {"type": code, "message": message}}
    return Answer(
        pieces=[sse(*frames(turn)[:-2], told, named=True)], content_type="text/event-stream"
    )


def sent_tools(body: dict[str, Any]) -> list[str]:
    """The names of the tools in a request."""
    return [tool["name"] for tool in body.get("tools", [])]
