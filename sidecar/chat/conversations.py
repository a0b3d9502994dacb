"""Conversations: made, listed, read along their active branch, and extended by questions and replies."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.chat import store
from sidecar.chat.branches import Branches
from sidecar.chat.citation_marks import used_numbers
from sidecar.chat.schemas import (
    ChatMessage,
    Conversation,
    ConversationCreate,
    ConversationList,
    ConversationPatch,
    MessageList,
    WorkspaceContext,
)
from sidecar.chat.store import Snapshot, StoredMessage
from sidecar.kernel.catalogue import error_text, text
from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paging import PageQuery, page_of

log = get_logger(__name__)

TITLE_CHARS: Final = 60
INTERRUPTED: Final = "PROVIDER_STREAM_INTERRUPTED"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked in a conversation, and what the answer is to replace."""

    conversation_id: str
    content: str | None
    attachments: tuple[str, ...]
    snapshot: Snapshot | None
    retry_message_id: str | None
    provider_id: str
    model: str


@dataclass(slots=True)
class Reserved:
    """A question that is stored, and the reply that is expected."""

    history: list[StoredMessage]
    """The branch before the question, oldest first."""
    question: StoredMessage
    draft: StoredMessage


class Conversations:
    """The stored side of the chat."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recover(self) -> None:
        """Bring order into what an earlier process left: unfinished replies and old histories."""

        def write(tx: Transaction) -> tuple[int, int]:
            drafts = store.generations(tx)
            for draft in drafts:
                draft.status, draft.error_code = "failed", INTERRUPTED
                _finish(tx, draft, None)
            store.release_reservations(tx)
            return len(drafts), store.link_linear_histories(tx)

        broken_off, linked = await self._database.write(write)
        if broken_off or linked:
            log.info("chat.recovered", extra={"replies": broken_off, "histories": linked})

    # -- conversations -------------------------------------------------------------------------

    async def create(self, request: ConversationCreate) -> Conversation:
        """Make an empty conversation."""
        conversation_id, now = new_id("conversation"), utc_now()
        untitled = text("chat.untitled")

        def write(tx: Transaction) -> Conversation:
            store.insert_conversation(tx, conversation_id, request.title, now)
            return _existing(tx, conversation_id, untitled)

        return await self._database.write(write)

    async def list(self, page: PageQuery) -> ConversationList:
        """Return a page of conversations, most recently used first."""
        untitled = text("chat.untitled")
        items, total = await self._database.read(
            lambda conn: store.list_conversations(conn, page, untitled)
        )
        return ConversationList(items=items, page=page_of(total, page))

    async def get(self, conversation_id: str) -> Conversation:
        """Return a conversation, or raise ``RESOURCE_NOT_FOUND``."""
        untitled = text("chat.untitled")
        return await self._database.read(lambda conn: _existing(conn, conversation_id, untitled))

    async def rename(self, conversation_id: str, request: ConversationPatch) -> Conversation:
        """Give a conversation another title."""

        def write(tx: Transaction) -> Conversation:
            store.rename_conversation(tx, conversation_id, request.title, utc_now())
            return _existing(tx, conversation_id)

        return await self._database.write(write)

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation with its messages, or raise ``RESOURCE_NOT_FOUND``."""
        if not await self._database.write(
            lambda tx: store.delete_conversation(tx, conversation_id)
        ):
            raise ProjectError("RESOURCE_NOT_FOUND")

    # -- messages ------------------------------------------------------------------------------

    async def messages(self, conversation_id: str) -> MessageList:
        """Return the active branch."""
        return await _shown(await self._database.read(lambda conn: _branch(conn, conversation_id)))

    async def select(self, conversation_id: str, message_id: str) -> MessageList:
        """Make the branch of a version the active one and return it.

        A message that is on the active branch already changes nothing there; in any case no reply
        that is being generated takes over what was chosen.
        """
        return await _shown(
            await self._database.write(lambda tx: _select(tx, conversation_id, message_id))
        )

    async def check(self, conversation_id: str, retry_message_id: str | None) -> None:
        """Raise ``RESOURCE_NOT_FOUND`` if a conversation, or a message of it, isn't there."""

        def read(conn: Readable) -> None:
            _existing(conn, conversation_id)
            if retry_message_id is not None:
                _retried(Branches(store.nodes(conn, conversation_id)), retry_message_id)

        await self._database.read(read)

    # -- generations ---------------------------------------------------------------------------

    async def begin(self, asked: Question) -> Reserved:
        """Store a question and reserve its reply.

        Raises ``RESOURCE_NOT_FOUND`` as :meth:`check` does, and ``VALIDATION_ERROR`` for a question
        without text that isn't a reply to be made again.
        """
        return await self._database.write(lambda tx: _begin(tx, asked))

    def checkpoint(self, draft: StoredMessage) -> None:
        """Keep how far a reply has come, without waiting for it."""
        self._database.submit(lambda tx: store.update_generation(tx, draft))

    async def finish(self, message: StoredMessage, snapshot: Snapshot | None) -> bool:
        """Store a reply that has ended; False if its conversation was deleted meanwhile."""
        return await self._database.write(lambda tx: _finish(tx, message, snapshot))


def _existing(conn: Readable, conversation_id: str, untitled: str = "") -> Conversation:
    """Return a conversation; *untitled* stands for a missing title, in the language of the request."""
    found = store.get_conversation(conn, conversation_id, untitled)
    if found is None:
        raise ProjectError("RESOURCE_NOT_FOUND", details={"conversation_id": conversation_id})
    return found


def _select(tx: Transaction, conversation_id: str, message_id: str) -> "_Branch":
    _existing(tx, conversation_id)
    branches = Branches(store.nodes(tx, conversation_id))
    if message_id not in branches:
        raise ProjectError("RESOURCE_NOT_FOUND", details={"message_id": message_id})
    leaf, _ = store.active_branch(tx, conversation_id)
    if message_id not in branches.path(leaf):
        leaf = branches.newest_end(message_id)
    store.set_active(tx, conversation_id, leaf, None)
    return _branch(tx, conversation_id)


def _retried(branches: Branches, message_id: str) -> store.Node:
    if message_id not in branches:
        raise ProjectError("RESOURCE_NOT_FOUND", details={"message_id": message_id})
    return branches.node(message_id)


def _begin(tx: Transaction, asked: Question) -> Reserved:
    conversation_id, now = asked.conversation_id, utc_now()
    _existing(tx, conversation_id)
    branches = Branches(store.nodes(tx, conversation_id))
    leaf, _ = store.active_branch(tx, conversation_id)
    snapshot_id = store.keep_snapshot(tx, asked.snapshot) if asked.snapshot else None
    retried = _retried(branches, asked.retry_message_id) if asked.retry_message_id else None
    if retried is not None and retried.role == "assistant" and retried.parent is not None:
        question_id = retried.parent
    else:
        question = _new_question(tx, asked, retried.parent if retried else leaf, snapshot_id, now)
        leaf = question_id = question.message_id
        branches = Branches(store.nodes(tx, conversation_id))
    draft = StoredMessage(
        message_id=new_id("message"),
        conversation_id=conversation_id,
        position=store.next_position(tx, conversation_id),
        parent_message_id=question_id,
        role="assistant",
        content="",
        created_at=now,
        snapshot_id=snapshot_id,
        attachments=list(asked.attachments),
        context_captured=True,
        provider_id=asked.provider_id,
        model=asked.model,
    )
    store.insert_generation(tx, draft)
    store.set_active(tx, conversation_id, leaf, draft.message_id)
    store.mark_used(tx, conversation_id, now)
    *history, question = store.load_messages(tx, branches.path(question_id))
    return Reserved(history, question, draft)


def _new_question(
    tx: Transaction, asked: Question, parent: str | None, snapshot_id: str | None, now: str
) -> StoredMessage:
    if asked.content is None or not (asked.content.strip() or asked.attachments):
        raise ProjectError(
            "VALIDATION_ERROR",
            details={
                "errors": [{"loc": ["body", "messages"], "message": "The question is empty."}]
            },
        )
    question = StoredMessage(
        message_id=new_id("message"),
        conversation_id=asked.conversation_id,
        position=store.next_position(tx, asked.conversation_id),
        parent_message_id=parent,
        role="user",
        content=asked.content,
        created_at=now,
        snapshot_id=snapshot_id,
        attachments=list(asked.attachments),
    )
    store.insert_message(tx, question)
    title = title_of(asked.content)
    if title:
        store.title_once(tx, asked.conversation_id, title)
    return question


def _finish(tx: Transaction, message: StoredMessage, snapshot: Snapshot | None) -> bool:
    if not store.delete_generation(tx, message.message_id):
        return False
    if snapshot is not None:
        store.keep_snapshot(tx, snapshot)
    store.insert_message(tx, message)
    conversation_id = message.conversation_id
    leaf, response_id = store.active_branch(tx, conversation_id)
    if response_id == message.message_id:
        store.set_active(tx, conversation_id, message.message_id, None)
    elif response_id is None and leaf == message.parent_message_id:
        # Whoever chose meanwhile came back to the question: its reply goes on from there.
        store.set_active(tx, conversation_id, message.message_id, None)
    store.mark_used(tx, conversation_id, utc_now())
    return True


@dataclass(frozen=True, slots=True)
class _Branch:
    """The active branch as it is stored."""

    conversation_id: str
    leaf: str | None
    messages: list[StoredMessage]
    versions: list[list[str]]
    snapshots: dict[str, Snapshot]


def _branch(conn: Readable, conversation_id: str) -> _Branch:
    _existing(conn, conversation_id)
    branches = Branches(store.nodes(conn, conversation_id))
    leaf, _ = store.active_branch(conn, conversation_id)
    messages = store.load_messages(conn, branches.path(leaf))
    snapshots = store.load_snapshots(
        conn, (message.snapshot_id for message in messages if message.snapshot_id)
    )
    versions = [branches.versions(message.message_id) for message in messages]
    return _Branch(conversation_id, leaf, messages, versions, snapshots)


async def _shown(branch: _Branch) -> MessageList:
    """Return a branch in the language of the request; reading the marks in its text takes a while."""
    items = await asyncio.to_thread(
        lambda: [
            _wire(message, branch.snapshots, versions)
            for message, versions in zip(branch.messages, branch.versions, strict=True)
        ]
    )
    return MessageList(conversation_id=branch.conversation_id, active_leaf=branch.leaf, items=items)


def _wire(
    message: StoredMessage, snapshots: dict[str, Snapshot], versions: Sequence[str]
) -> ChatMessage:
    snapshot = snapshots.get(message.snapshot_id) if message.snapshot_id else None
    sources = tuple((source["number"], source["citation_id"]) for source in message.citations)
    return ChatMessage.model_validate(
        {
            "message_id": message.message_id,
            "conversation_id": message.conversation_id,
            "parent_message_id": message.parent_message_id,
            "role": message.role,
            "content": message.content,
            "thinking": message.thinking,
            "tool_calls": message.tool_calls,
            "activity": message.activity,
            "citations": message.citations,
            "used_citations": used_numbers(message.content, sources),
            "workspace_context": WorkspaceContext(
                file_path=snapshot.file_path, content=snapshot.content
            )
            if snapshot
            else None,
            "attachments": message.attachments,
            "context_captured": message.context_captured,
            "status": message.status,
            "error_code": message.error_code,
            "error": error_text(message.error_code) if message.error_code else None,
            "provider_id": message.provider_id,
            "model": message.model,
            "versions": list(versions),
            "created_at": message.created_at,
        }
    )


def title_of(question: str) -> str:
    """Return a title for a conversation that begins with *question*; "" if it has no text."""
    lines = (line.strip().lstrip("#>*- ").strip() for line in question.splitlines())
    first = " ".join(next((line for line in lines if line), "").split())
    if len(first) <= TITLE_CHARS:
        return first
    cut = first[:TITLE_CHARS]
    blank = cut.rfind(" ")
    return f"{cut[:blank] if blank > TITLE_CHARS // 2 else cut}…"
