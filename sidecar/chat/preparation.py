"""Makes a turn ready: reads its material, chooses its tools, and puts its prompt together."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from sidecar.chat import prompts
from sidecar.chat.attachments import MOST_IMAGES, AttachmentReader, ImageReading
from sidecar.chat.citations import Sources
from sidecar.chat.context_fitting import source_tokens
from sidecar.chat.context_status import context_status
from sidecar.chat.conversations import Conversations, Reserved
from sidecar.chat.prompt import Material, Prompt, turns_of, turns_of_messages
from sidecar.chat.reply import Reply
from sidecar.chat.retrieval_tool import RetrievalTool
from sidecar.chat.rounds import ChatModels, Rounds
from sidecar.chat.schemas import ChatRequest
from sidecar.chat.store import Snapshot
from sidecar.chat.turn import Kept, Turn
from sidecar.chat.turn_tools import ChatEvent, TurnTool, TurnTools
from sidecar.kernel.clock import local_today
from sidecar.media.schemas import Attachment
from sidecar.providers.schemas.model_call import ChatTarget, Message
from sidecar.retrieval.service import RetrievalService


@dataclass(frozen=True, slots=True)
class Means:
    """What turns work with."""

    models: ChatModels
    retrieval: RetrievalService
    reader: AttachmentReader
    agent_tools: TurnTools | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was found to be good."""

    request: ChatRequest
    target: ChatTarget
    attachments: Sequence[Attachment]
    snapshot: Snapshot | None
    reserved: Reserved | None


class TurnPreparation:
    """The beginning of one turn."""

    def __init__(self, means: Means, asked: Asked) -> None:
        self._means = means
        self._asked = asked
        self._material = Material()
        self._turns: list[list[Message]] = []

    @property
    def _calls_tools(self) -> bool:
        return "tool_calling" in self._asked.target.capabilities

    async def events(self) -> AsyncGenerator[ChatEvent, None]:
        """Read attachments and history, and tell what becomes of them."""
        request, reader = self._asked.request, self._means.reader
        if request.use_rag and not self._calls_tools:
            yield context_status("retrieval_unavailable")
        sees = "vision" in self._asked.target.capabilities
        images = ImageReading(sees, request.image_fallback_tools)
        async with aclosing(reader.read(self._asked.attachments, images, self._material)) as told:
            async for event in told:
                yield event
        if self._asked.snapshot is not None:
            self._material.add_open_file(self._asked.snapshot)
        if self._asked.reserved is not None:
            history = self._asked.reserved.history
            room = MOST_IMAGES - len(self._material.images)
            earlier = await reader.of_history(history, sees=sees, most_images=room)
            self._turns = turns_of(history, earlier)
        else:
            spoken = [one for one in request.messages[:-1] if one.role != "system"]
            self._turns = turns_of_messages(Message(one.role, one.content) for one in spoken)

    def rounds(self, reply: Reply, sources: Sources) -> Rounds:
        """Return the rounds of the turn."""
        request, target = self._asked.request, self._asked.target
        tools: list[TurnTool] = []
        if self._calls_tools:
            if request.use_rag:
                tools.append(RetrievalTool(self._means.retrieval, request.filters, sources))
            if request.allow_agent and self._means.agent_tools is not None:
                tools += self._means.agent_tools.tools(request, target)
        reserved = self._asked.reserved
        question = reserved.question.content if reserved else request.question or ""
        searches = request.use_rag and self._calls_tools
        prompt = Prompt(
            target,
            self._rules(searches=searches),
            self._turns,
            self._material.question(question),
        )
        return Rounds(self._means.models, prompt, tools, reply)

    def _rules(self, *, searches: bool) -> list[str]:
        rules = [prompts.search_rules(local_today())] if searches else []
        if self._material.texts or any(
            prompts.is_reference(turn[0].content) for turn in self._turns
        ):
            rules.append(prompts.REFERENCES)
        given = [one.content for one in self._asked.request.messages if one.role == "system"]
        return [*rules, *given]


def turn_of(
    means: Means, asked: Asked, conversations: Conversations, ended: Callable[[Turn], None]
) -> Turn:
    """Return the turn that answers what was asked; *ended* is called with it at its end."""
    reserved = asked.reserved
    return Turn(
        TurnPreparation(means, asked),
        Sources(source_tokens(asked.target)),
        Kept(conversations, reserved, asked.snapshot) if reserved else None,
        ended,
    )
