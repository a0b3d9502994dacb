"""OpenAI Responses as documented."""

from typing import Any

from tests.fakes.upstream import Answer, Turn, sse

PROVIDER_TYPE = "openai_responses"
PATH = "/responses"
MODELS_PATH = "/models"
CAPABILITIES = ("chat", "streaming", "tool_calling", "reasoning", "vision")


def _usage(turn: Turn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    given, made = turn.usage
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


def _items(turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.thinking:
        summary = [{"type": "summary_text", "text": "".join(turn.thinking)}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if turn.text:
        content = [{"type": "output_text", "text": "".join(turn.text), "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
    items += [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": "".join(call.arguments),
            "status": "completed",
        }
        for number, call in enumerate(turn.calls)
    ]
    return items


def _response(turn: Turn, status: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "m",
        "output": _items(turn) if status != "in_progress" else [],
        "usage": _usage(turn) if status != "in_progress" else None,
    }
    if turn.finish == "length" and status != "in_progress":
        body |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return body


def frames(turn: Turn) -> list[dict[str, Any]]:
    """The events of a streamed answer."""
    begun = _response(turn, "in_progress")
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    output = -1
    if turn.thinking:
        output += 1
        item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
        place: dict[str, Any] = {"item_id": "rs_1", "output_index": output, "summary_index": 0}
        found.append({"type": "response.output_item.added", "output_index": output, "item": item})
        part: dict[str, Any] = {"type": "summary_text", "text": ""}
        found.append({"type": "response.reasoning_summary_part.added", **place, "part": part})
        found += [
            {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
            for piece in turn.thinking
        ]
        thought = "".join(turn.thinking)
        part = {"type": "summary_text", "text": thought}
        found.append({"type": "response.reasoning_summary_text.done", **place, "text": thought})
        found.append({"type": "response.reasoning_summary_part.done", **place, "part": part})
        item = _items(turn)[0]
        found.append({"type": "response.output_item.done", "output_index": output, "item": item})
    if turn.text:
        output += 1
        place = {"item_id": "msg_1", "output_index": output, "content_index": 0}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        found.append({"type": "response.output_item.added", "output_index": output, "item": item})
        part = {"type": "output_text", "text": "", "annotations": []}
        found.append({"type": "response.content_part.added", **place, "part": part})
        found += [
            {"type": "response.output_text.delta", **place, "delta": piece} for piece in turn.text
        ]
        whole = "".join(turn.text)
        found.append({"type": "response.output_text.done", **place, "text": whole})
        part = {**part, "text": whole}
        found.append({"type": "response.content_part.done", **place, "part": part})
        item = {**item, "content": [part], "status": "completed"}
        found.append({"type": "response.output_item.done", "output_index": output, "item": item})
    made = [item for item in _items(turn) if item["type"] == "function_call"]
    first = output + 1
    for number, item in enumerate(made):
        opened = {**item, "arguments": "", "status": "in_progress"}
        found.append(
            {
                "type": "response.output_item.added",
                "output_index": first + number,
                "item": opened,
            }
        )
    most = max((len(call.arguments) for call in turn.calls), default=0)
    for at in range(most):
        for number, call in enumerate(turn.calls):
            if at < len(call.arguments):
                found.append(
                    {
                        "type": "response.function_call_arguments.delta",
                        "item_id": f"fc_{number}",
                        "output_index": first + number,
                        "delta": call.arguments[at],
                    }
                )
    for number, item in enumerate(made):
        there = {"output_index": first + number}
        found.append(
            {
                "type": "response.function_call_arguments.done",
                "item_id": item["id"],
                **there,
                "arguments": item["arguments"],
            }
        )
        found.append({"type": "response.output_item.done", **there, "item": item})
    ended = _response(turn, "completed")
    found.append({"type": f"response.{ended['status']}", "response": ended})
    return [{**event, "sequence_number": number} for number, event in enumerate(found)]


def stream(turn: Turn) -> Answer:
    """A streamed answer."""
    return Answer(pieces=[sse(*frames(turn), named=True)], content_type="text/event-stream")


def whole(turn: Turn) -> Answer:
    """An answer in one piece."""
    return Answer.of_json(_response(turn, "completed"))


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
    failed = {
        **_response(turn, "in_progress"),
        "status": "failed",
        "error": {"code": code, "message": message},
    }
    told = [*frames(turn)[:-1], {"type": "response.failed", "response": failed}]
    return Answer(pieces=[sse(*told, named=True)], content_type="text/event-stream")


def sent_tools(body: dict[str, Any]) -> list[str]:
    """The names of the tools in a request."""
    return [tool["name"] for tool in body.get("tools", [])]
