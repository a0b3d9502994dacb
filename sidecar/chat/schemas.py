"""Wire models of the chat."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sidecar.kernel.paging import Page

MAX_TEXT = 2_000_000
MAX_MESSAGES = 1000
MAX_ATTACHMENTS = 8
MAX_FALLBACK_TOOLS = 2

MessageStatus = Literal["completed", "failed", "cancelled"]


def _title(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("title_blank", "The title must hold more than blanks.")
    return text


Title = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_title)]


class ChatFilters(BaseModel):
    """Which notes are searched; filters combine with AND, null and an empty list are no filter."""

    folder: str | None = Field(
        None, description="Notes in this folder and the folders below it; relative to the vault."
    )
    tags: list[str] | None = Field(
        None, max_length=100, description="Notes with all of these tags."
    )
    note_ids: list[str] | None = Field(None, max_length=10_000, description="These notes only.")


class WorkspaceContext(BaseModel):
    """What the editor shows, unsaved edits included."""

    file_path: str = Field(
        max_length=4096, description="A label for the model and for people; it is never opened."
    )
    content: str = Field(max_length=MAX_TEXT, description="At most 2,000,000 characters.")


class RequestMessage(BaseModel):
    """One message of a request."""

    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=MAX_TEXT)


class ChatRequest(BaseModel):
    """A question to a model.

    With a conversation the history comes from its active branch, and of ``messages`` only the last
    one (the question) and those of role ``system`` count. Without one, ``messages`` is everything.
    """

    provider_id: str = Field(max_length=200)
    model: str | None = Field(
        None, max_length=500, description="null: the provider's default model."
    )
    messages: list[RequestMessage] = Field(
        max_length=MAX_MESSAGES,
        description="The last one is the question. May be empty where `retry_message_id` names a reply.",
    )
    conversation_id: str | None = Field(
        None, max_length=200, description="null: the chat is answered and nothing is stored."
    )
    use_rag: bool = Field(False, description="Let the model search the notes while it answers.")
    filters: ChatFilters | None = Field(None, description="Hold for every search of the answer.")
    workspace_context: WorkspaceContext | None = None
    allow_agent: bool = Field(False, description="Let the model start an agent run.")
    attachments: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list, max_length=MAX_ATTACHMENTS, description="Ids of attachments."
    )
    image_fallback_tools: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list,
        max_length=MAX_FALLBACK_TOOLS,
        description="Registered tools that put a picture into words for a model that can't see.",
    )
    retry_message_id: str | None = Field(
        None,
        max_length=200,
        description="A user's message to be replaced by the question, or a reply to be made again.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.retry_message_id is not None and self.conversation_id is None:
            raise PydanticCustomError(
                "retry_without_conversation", "retry_message_id needs a conversation_id."
            )
        if not self.messages:
            if self.retry_message_id is None:
                raise PydanticCustomError("no_question", "messages must not be empty.")
        elif self.messages[-1].role != "user":
            raise PydanticCustomError("no_question", "The last message must be the user's.")
        return self

    @property
    def question(self) -> str | None:
        """The text that is asked, None if there is none."""
        return self.messages[-1].content if self.messages else None


class ToolCallRecord(BaseModel):
    """A tool that the model called while it answered."""

    tool_call_id: str
    name: str
    arguments: dict[str, Any]
    status: Literal["completed", "error"]
    result: str | None = Field(
        None, description="JSON of what the tool gave back, for tools whose result is shown."
    )


class ThinkingActivity(BaseModel):
    """A piece of the model's thinking."""

    type: Literal["thinking"]
    text: str


class ToolCallActivity(BaseModel):
    """A tool call at its place between the thinking; its details are in ``tool_calls``."""

    type: Literal["tool_call"]
    tool_call_id: str


Activity = Annotated[ThinkingActivity | ToolCallActivity, Field(discriminator="type")]


class Citation(BaseModel):
    """A passage of a note that the model was given while it answered."""

    number: int = Field(description="From 1, the same for as long as the reply exists.")
    citation_id: str
    note_id: str
    block_id: str
    title: str = Field(description="The note's title.")
    file_path: str = Field(description="The note's file, relative to the vault.")
    heading_path: list[str] = Field(description="The headings above the passage, outermost first.")
    snippet: str
    start_char: int | None = Field(description="Where the passage begins in the note's text.")
    end_char: int | None = Field(description="Where it ends.")
    source_audio: str | None = Field(description="The recording that the note was made from.")
    start_time: float | None = Field(description="Where the passage begins in it, in seconds.")
    end_time: float | None = Field(description="Where the passage ends in it, in seconds.")
    speaker: str | None


class ChatMessage(BaseModel):
    """One message of a conversation's active branch."""

    message_id: str
    conversation_id: str
    parent_message_id: str | None = Field(description="The message before it; null for the first.")
    role: Literal["user", "assistant"]
    content: str
    thinking: str | None = Field(description="All thinking of a reply; null if there was none.")
    tool_calls: list[ToolCallRecord]
    activity: list[Activity] | None = Field(
        description="Thinking and tool calls in their order; null where that isn't known."
    )
    citations: list[Citation] = Field(description="All sources that the model was given.")
    used_citations: list[int] = Field(
        description="Numbers of the sources that the text cites, in the order of their first mark."
    )
    workspace_context: WorkspaceContext | None
    attachments: list[str]
    context_captured: bool = Field(
        description="Whether this reply tells its own `workspace_context` and `attachments`; else "
        "those of the message before it hold."
    )
    status: MessageStatus
    error_code: str | None = Field(description="Why a failed reply ended; null for all others.")
    error: str | None = Field(description="The same for a person to read.")
    provider_id: str | None = Field(description="Who answered; null for a question.")
    model: str | None
    versions: list[str] = Field(
        description="Ids of all messages with the same parent and role, oldest first, this one too."
    )
    created_at: str


class MessageList(BaseModel):
    """The active branch, oldest first."""

    conversation_id: str
    active_leaf: str | None
    items: list[ChatMessage]


class Conversation(BaseModel):
    """A conversation."""

    conversation_id: str
    title: str = Field(description="Taken from the first question where nobody gave one.")
    active_leaf: str | None = Field(
        description="The last message of the active branch; null while there is none."
    )
    active_response_id: str | None = Field(
        description="The id that the reply will have which is being generated; null if none is."
    )
    created_at: str
    updated_at: str


class ConversationList(BaseModel):
    """A page of conversations, most recently used first."""

    items: list[Conversation]
    page: Page


class ConversationCreate(BaseModel):
    """A new conversation."""

    model_config = ConfigDict(extra="forbid")

    title: Title | None = Field(None, description="null: taken from the first question.")


class ConversationPatch(BaseModel):
    """What is to change of a conversation."""

    model_config = ConfigDict(extra="forbid")

    title: Title
