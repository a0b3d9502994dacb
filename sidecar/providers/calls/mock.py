"""A model that is no model, for work on the app without a provider. It exists in development only.

It says back what it was told last. A line ``/tool name {json}`` in that makes it call the tool instead.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from sidecar.providers.calls.streaming import done_event, events_of_reply
from sidecar.providers.schemas.model_call import ModelEvent, ModelReply, ModelRequest, ToolCall
from sidecar.providers.schemas.wire import ModelInfo

MODEL: Final = "mock"
_TOOL: Final = re.compile(r"^/tool (\S+)\s*(\{.*\})?\s*$", re.MULTILINE)


def mock_reply(request: ModelRequest) -> ModelReply:
    """Return the whole answer."""
    last = request.messages[-1] if request.messages else None
    said = last.content if last else ""
    wanted = _TOOL.search(said) if last and last.role == "user" else None
    if wanted and wanted[1] in {tool.name for tool in request.tools}:
        call = ToolCall(f"call_mock_{len(request.messages)}", wanted[1], _arguments(wanted[2]))
        return ModelReply("", tool_calls=(call,), finish_reason="tool_calls")
    return ModelReply(f"Mock: {said}", finish_reason="stop")


def mock_events(request: ModelRequest) -> Iterator[ModelEvent]:
    """Yield the same answer as a stream, word by word."""
    reply = mock_reply(request)
    for word in re.findall(r"\S+\s*", reply.content):
        yield ModelEvent("TextDelta", {"text": word})
    yield from events_of_reply(ModelReply("", tool_calls=reply.tool_calls))
    yield done_event("completed", reply.finish_reason)


def mock_models() -> list[ModelInfo]:
    """Return the one model there is."""
    return [
        ModelInfo(
            model=MODEL, display_name="Mock", capabilities=["chat", "streaming", "tool_calling"]
        )
    ]


def _arguments(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
