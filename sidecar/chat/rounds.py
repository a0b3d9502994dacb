"""The model rounds of one reply: text streams through, tools run between the rounds."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sidecar.chat import prompts
from sidecar.chat.context_status import context_status
from sidecar.chat.prompt import Prompt
from sidecar.chat.reply import Reply
from sidecar.chat.turn_tools import ChatEvent, ToolOutcome, TurnTool
from sidecar.providers.schemas.model_call import (
    ChatTarget,
    Message,
    ModelEvent,
    ModelRequest,
    ToolCall,
    ToolDefinition,
)

TOOL_ROUNDS: Final = 3
CALLS_A_ROUND: Final = 6
TOOL_LIMIT: Final = "tool_limit"


class ChatModels(Protocol):
    """What answers."""

    def stream(
        self, target: ChatTarget, request: ModelRequest, /
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of an answer; one ``Done`` is the last. Closing it closes the call."""
        ...


class ModelSource(ChatModels, Protocol):
    """What the chat needs of the providers."""

    async def target(self, provider_id: str, model: str | None, /) -> ChatTarget:
        """Return what is to be asked.

        Raises ``RESOURCE_NOT_FOUND``, ``PROVIDER_DISABLED`` or ``MODEL_CAPABILITY_MISMATCH``.
        """
        ...


@dataclass(slots=True)
class Ending:
    """How a reply ended."""

    finish_reason: str | None = None
    cancelled: bool = False
    error: dict[str, Any] | None = None
    """Data of the ``Error`` event; None for a reply that was completed."""
    usage: dict[str, int] | None = None
    """Tokens of all rounds that reported any."""

    def add_usage(self, reported: Mapping[str, Any]) -> None:
        """Add what a round reports."""
        self.usage = {
            name: (self.usage or {}).get(name, 0) + int(reported.get(name) or 0)
            for name in ("input_tokens", "output_tokens", "total_tokens")
        }


@dataclass(slots=True)
class _Round:
    """What one call of the model brought."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    """The model's id of a call → ours, which no other call of the reply has."""

    @property
    def begun(self) -> bool:
        """Whether anything has come."""
        return bool(self.text or self.thinking or self.ids)

    def message(self) -> Message:
        """Return what the model said, for the next round."""
        return Message(
            "assistant",
            "".join(self.text),
            tool_calls=tuple(self.calls),
            reasoning_content="".join(self.thinking) or None,
        )


class Rounds:
    """Runs the rounds of one reply and fills it."""

    def __init__(
        self, models: ChatModels, prompt: Prompt, tools: Sequence[TurnTool], reply: Reply
    ) -> None:
        self._models = models
        self._prompt = prompt
        self._tools = {tool.definition.name: tool for tool in tools}
        self._reply = reply
        self._told_left_out = False
        self.ending = Ending()

    async def events(self) -> AsyncGenerator[ModelEvent | ChatEvent, None]:
        """Yield what the client is told, but for ``Usage``, ``Error`` and ``Done``.

        :attr:`ending` tells these once it is over.
        """
        for number in range(1, TOOL_ROUNDS + 2):
            finish = number > TOOL_ROUNDS
            offered = () if finish else tuple(tool.definition for tool in self._tools.values())
            current = _Round()
            async with aclosing(self._ask(offered, current, finish=finish)) as told:
                async for event in told:
                    yield event
            if self.ending.error is not None or self.ending.cancelled or not current.calls:
                return
            outcomes = await self._run(current, 0 if finish else CALLS_A_ROUND, number)
            self._prompt.exchanges.append(current.message())
            for call, outcome in zip(current.calls, outcomes, strict=True):
                for event in outcome.events:
                    yield event
                yield self._ended(call, outcome)
                self._prompt.exchanges.append(
                    Message("tool", outcome.content, tool_call_id=call.tool_call_id)
                )
        self.ending.finish_reason = TOOL_LIMIT
        yield context_status("tool_limit")

    # -- one call of the model -----------------------------------------------------------------

    async def _ask(
        self, offered: Sequence[ToolDefinition], current: _Round, *, finish: bool
    ) -> AsyncGenerator[ModelEvent | ChatEvent, None]:
        """Call the model; where nobody knew how much it takes, try again with less history."""
        while True:
            request = self._prompt.request(offered, finish=finish)
            if self._prompt.left_out and not self._told_left_out:
                self._told_left_out = True
                yield context_status("history_truncated", truncated=True)
            async with aclosing(self._call(request, current)) as told:
                async for event in told:
                    yield event
            error = self.ending.error
            too_long = error is not None and error["code"] == "MODEL_CONTEXT_LENGTH_EXCEEDED"
            if not too_long or current.begun or not self._prompt.shorten():
                return
            self.ending.error = None

    async def _call(
        self, request: ModelRequest, current: _Round
    ) -> AsyncGenerator[ModelEvent | ChatEvent, None]:
        reply, ending = self._reply, self.ending
        async with aclosing(self._models.stream(self._prompt.target, request)) as stream:
            async for event in stream:
                name, data = event.event, event.data
                if name == "TextDelta":
                    text: str = data["text"]
                    current.text.append(text)
                    shown = reply.text.add(text)
                    if shown:
                        yield event if shown is text else ChatEvent("TextDelta", {"text": shown})
                elif name == "ThinkingDelta":
                    current.thinking.append(data["text"])
                    reply.think(data["text"])
                    yield event
                elif name == "Usage":
                    ending.add_usage(data)
                elif name == "Error":
                    ending.error = data
                elif name == "Done":
                    ending.finish_reason = data.get("finish_reason")
                    ending.cancelled = data["status"] == "cancelled"
                else:
                    told = self._tool_event(name, data, current)
                    if told is not None:
                        yield told

    def _tool_event(self, name: str, data: Mapping[str, Any], current: _Round) -> ChatEvent | None:
        """Take an event of a tool call; its end is told once the tool has run."""
        given = data["tool_call_id"]
        if name == "ToolCallStart":
            ours = self._own_id(given)
            current.ids[given] = ours
            self._reply.call(ours, data["name"])
        ours = current.ids.get(given, given)
        if name != "ToolCallEnd":
            return ChatEvent(name, {**data, "tool_call_id": ours})
        if ours not in self._reply.tools:
            self._reply.call(ours, data["name"])
        self._reply.tools[ours].arguments = data["arguments"]
        current.calls.append(ToolCall(ours, data["name"], data["arguments"]))
        return None

    def _own_id(self, given: str) -> str:
        """Return an id that no call of the reply has: some models count anew in every round."""
        ours, count = given, 1
        while ours in self._reply.tools:
            count += 1
            ours = f"{given}-{count}"
        return ours

    # -- tools ---------------------------------------------------------------------------------

    async def _run(self, current: _Round, limit: int, number: int) -> list[ToolOutcome]:
        """Run at most *limit* calls of a round beside each other; return all outcomes in their order."""
        runnable = [
            (call, self._tools[call.name])
            for call in current.calls[:limit]
            if call.name in self._tools
        ]
        async with asyncio.TaskGroup() as group:
            tasks = {
                call.tool_call_id: group.create_task(tool.work(call, number))
                for call, tool in runnable
            }
        works = {call_id: task.result() for call_id, task in tasks.items()}
        return [
            self._tools[call.name].outcome(works[call.tool_call_id])
            if call.tool_call_id in works
            else _refused(position)
            for position, call in enumerate(current.calls)
        ]

    def _ended(self, call: ToolCall, outcome: ToolOutcome) -> ChatEvent:
        tool = self._reply.tools[call.tool_call_id]
        tool.completed = outcome.completed
        data: dict[str, Any] = {
            "tool_call_id": call.tool_call_id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed" if outcome.completed else "failed",
        }
        if outcome.result is not None:
            data["result"] = outcome.result
            tool.result = json.dumps(outcome.result, ensure_ascii=False)
        return ChatEvent("ToolCallEnd", data)


def _refused(position: int) -> ToolOutcome:
    reason = (
        prompts.TOO_MANY_CALLS.format(limit=CALLS_A_ROUND)
        if position >= CALLS_A_ROUND
        else prompts.NOT_OFFERED
    )
    return ToolOutcome(json.dumps({"error": reason}), completed=False)
