"""What a reply has become so far: its text, its thinking, and the tools that were called."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

PARAGRAPH_BREAK: Final = "\n\n"
_LEADING_BLANK_LINES: Final = re.compile(r"\A(?:[^\S\n]*\n)+")
_CLOSING_LINES: Final = re.compile(r"\r?\n\s*\Z")


class ReplyText:
    """The answer as it is shown: one blank line where a tool call parts it, and none at its ends.

    What may turn out to be such an end is held back until more text follows.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._held = ""
        self._at_start = True

    def add(self, delta: str) -> str:
        """Take a piece of text and return what can be shown by now."""
        if not self._held and not self._at_start and "\n" not in delta:
            self._shown.append(delta)
            return delta
        held = self._held + delta
        if self._at_start:
            held = _LEADING_BLANK_LINES.sub("", held)
            if not held.strip():
                self._held = held
                return ""
            if self._shown:
                held = PARAGRAPH_BREAK + held
            self._at_start = False
        closing = _CLOSING_LINES.search(held)
        shown = held[: closing.start()] if closing else held
        self._held = held[len(shown) :]
        if shown:
            self._shown.append(shown)
        return shown

    def part(self) -> None:
        """Begin a new paragraph with the next text: a tool was called here."""
        self._held = ""
        self._at_start = True

    def __str__(self) -> str:
        return "".join(self._shown)


@dataclass(slots=True)
class CalledTool:
    """A tool call of the reply."""

    tool_call_id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    completed: bool = False
    result: str | None = None

    def record(self) -> dict[str, Any]:
        """Return what is kept of it; a call that didn't come to its end counts as failed."""
        return {
            "tool_call_id": self.tool_call_id,
            "name": self.name,
            "arguments": self.arguments,
            "status": "completed" if self.completed else "error",
            "result": self.result,
        }


class Reply:
    """Collects what a reply consists of."""

    def __init__(self) -> None:
        self.text = ReplyText()
        self.tools: dict[str, CalledTool] = {}
        self._activity: list[tuple[str, list[str]]] = []

    def think(self, text: str) -> None:
        """Take a piece of the model's thinking."""
        if not self._activity or self._activity[-1][0] != "thinking":
            self._activity.append(("thinking", []))
        self._activity[-1][1].append(text)

    def call(self, tool_call_id: str, name: str) -> CalledTool:
        """Note that a tool is being called."""
        tool = CalledTool(tool_call_id, name)
        self.tools[tool_call_id] = tool
        self._activity.append(("tool_call", [tool_call_id]))
        self.text.part()
        return tool

    @property
    def thinking(self) -> str | None:
        """All thinking, None if there was none."""
        pieces = [piece for kind, texts in self._activity if kind == "thinking" for piece in texts]
        return "".join(pieces) or None

    def activity(self) -> list[dict[str, Any]]:
        """Return thinking and tool calls in the order in which they happened."""
        return [
            {"type": kind, "text": "".join(texts)}
            if kind == "thinking"
            else {"type": kind, "tool_call_id": texts[0]}
            for kind, texts in self._activity
        ]

    def tool_records(self) -> list[dict[str, Any]]:
        """Return what is kept of the tool calls."""
        return [tool.record() for tool in self.tools.values()]
