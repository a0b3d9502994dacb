"""What a tool must be to be offered in a chat turn, and what brings tools into one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sidecar.chat.schemas import ChatRequest
from sidecar.providers.schemas.model_call import ChatTarget, ToolCall, ToolDefinition


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """An event of a chat stream: those of a model, ``Citation`` and ``ContextStatus``."""

    event: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """How a tool call ended."""

    content: str
    """What the model is given."""
    completed: bool = True
    events: Sequence[ChatEvent] = ()
    """Told to the client before the call's end."""
    result: dict[str, Any] | None = field(default=None)
    """Shown to the client with the call's end, and kept."""


class TurnTool(Protocol):
    """A tool of one reply. Its failures are outcomes, not exceptions."""

    definition: ToolDefinition

    async def work(self, call: ToolCall, round_number: int) -> Any:
        """Do what the call asks for, beside the other calls of its round; ends when cancelled."""
        ...

    def outcome(self, work: Any) -> ToolOutcome:
        """Turn what :meth:`work` returned into the outcome; asked for in the order of the calls."""
        ...


class TurnTools(Protocol):
    """What brings more tools into turns that allow an agent."""

    def tools(self, request: ChatRequest, target: ChatTarget) -> Sequence[TurnTool]:
        """Return the tools of one reply."""
        ...


ToolSource = Literal["mcp", "plugin"]


class ImageTools(Protocol):
    """Registered tools that can put a picture into words."""

    def source(self, name: str) -> ToolSource | None:
        """Return where a tool comes from, None if no such tool is registered."""
        ...

    async def describe(self, name: str, image: str) -> str:
        """Run a tool with a data URI, under the usual permissions and limits, and return its text."""
        ...
