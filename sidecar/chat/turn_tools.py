"""What a tool must be to be offered in a chat turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sidecar.providers.schemas.model_call import ToolCall, ToolDefinition


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
