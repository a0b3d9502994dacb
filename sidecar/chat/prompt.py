"""What a model is sent: rules, the branch so far, the question with its material, and tool results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sidecar.chat import prompts
from sidecar.chat.context_fitting import fit
from sidecar.chat.store import Snapshot, StoredMessage
from sidecar.providers.schemas.model_call import ChatTarget, Message, ModelRequest, ToolDefinition


@dataclass(slots=True)
class Material:
    """What a question comes with, as the model gets it."""

    texts: list[str] = field(default_factory=list)
    """Framed by :func:`sidecar.chat.prompts.reference`."""
    images: list[str] = field(default_factory=list)
    """Data URIs."""

    def add(self, name: str, text: str) -> None:
        """Add the words of an attachment."""
        self.texts.append(prompts.reference("attachment", name, text))

    def add_open_file(self, snapshot: Snapshot) -> None:
        """Add what the editor shows."""
        self.texts.append(prompts.reference("open file", snapshot.file_path, snapshot.content))

    def question(self, text: str) -> Message:
        """Return the user's message with all of it."""
        return Message("user", "\n\n".join([*self.texts, text]), images=tuple(self.images))


@dataclass(slots=True)
class Prompt:
    """The messages of a reply's requests; the exchanges with tools are added round by round."""

    target: ChatTarget
    rules: list[str]
    turns: list[list[Message]]
    question: Message
    exchanges: list[Message] = field(default_factory=list)
    left_out: int = 0
    """Turns that the last request left out."""
    _skipped: int = 0

    def request(self, tools: Sequence[ToolDefinition], *, finish: bool) -> ModelRequest:
        """Return the request of the next round; with *finish* the model is asked to come to an end.

        Raises ``MODEL_CONTEXT_LENGTH_EXCEEDED`` if it can't fit without any history.
        """
        rules = [*self.rules, prompts.FINISH] if finish else self.rules
        system = [Message("system", "\n\n".join(rules))] if rules else []
        fixed = [*system, self.question, *self.exchanges]
        fitted = fit(self.target, fixed, self.turns[self._skipped :], with_tools=bool(tools))
        self.left_out = self._skipped + fitted.left_out
        history = [message for turn in fitted.turns for message in turn]
        messages = _alternating([*history, self.question])
        return ModelRequest(
            (*system, *messages, *self.exchanges), tools=tuple(tools), source="chat"
        )

    def shorten(self) -> bool:
        """Leave out the older half of what the last request held; False if there was no history."""
        kept = len(self.turns) - self.left_out
        self._skipped = self.left_out + (kept + 1) // 2
        return kept > 0


def turns_of(
    history: Sequence[StoredMessage], material: Mapping[str, Material]
) -> list[list[Message]]:
    """Return a stored branch as turns; *material* is what questions came with, by message id."""
    turns: list[list[Message]] = []
    for message in history:
        if message.role == "user":
            given = material.get(message.message_id) or Material()
            turns.append([given.question(message.content)])
        elif message.content and turns:
            # A reply that never came to a word has nothing to tell.
            turns[-1].append(
                Message("assistant", message.content, reasoning_content=message.thinking)
            )
    return turns


def turns_of_messages(messages: Iterable[Message]) -> list[list[Message]]:
    """Return messages as turns, each from a question to the next."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _alternating(messages: Sequence[Message]) -> list[Message]:
    """Join questions that follow each other: some models take no two in a row."""
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == joined[-1].role == "user":
            before = joined.pop()
            message = replace(  # noqa: PLW2901 - the two become one
                message,
                content=f"{before.content}\n\n{message.content}",
                images=before.images + message.images,
            )
        joined.append(message)
    return joined
