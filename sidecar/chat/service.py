"""The chat: what the router, and whoever else asks a model about the notes, calls."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Final

from sidecar.chat import store
from sidecar.chat.conversations import Conversations, Question, Reserved
from sidecar.chat.schemas import ChatRequest
from sidecar.chat.store import Snapshot
from sidecar.chat.turn_tools import ChatEvent, ImageTools, ToolOutcome, TurnTool, TurnTools
from sidecar.kernel.database import Database
from sidecar.media.service import AttachmentUser, MediaService
from sidecar.providers.schemas.model_call import ChatTarget
from sidecar.retrieval.service import RetrievalService
from sidecar.vault.service import check_folder

if TYPE_CHECKING:
    from sidecar.chat.attachments import AttachmentReader, Documents
    from sidecar.chat.preparation import Means
    from sidecar.chat.rounds import ModelSource
    from sidecar.chat.turn import Turn

__all__ = ["ChatEvent", "ChatService", "ImageTools", "ToolOutcome", "TurnTool", "TurnTools"]

STOP_SECONDS: Final = 1.5


class ChatService:
    """Conversations, and replies as streams of events."""

    def __init__(
        self,
        database: Database,
        models: "ModelSource",
        retrieval: RetrievalService,
        media: MediaService,
        documents: "Documents",
        *,
        agent_tools: TurnTools | None = None,
        image_tools: ImageTools | None = None,
    ) -> None:
        self._database = database
        self._models = models
        self._retrieval = retrieval
        self._media = media
        self._documents = documents
        self._agent_tools = agent_tools
        self._image_tools = image_tools
        self._running: set[Turn] = set()
        self.conversations = Conversations(database)
        media.attachments.add_user(
            AttachmentUser("chat_message", store.messages_with, store.forget_attachment)
        )

    @cached_property
    def _reader(self) -> "AttachmentReader":
        from sidecar.chat.attachments import AttachmentReader  # noqa: PLC0415 - not needed before ready

        return AttachmentReader(self._database, self._media, self._documents, self._image_tools)

    @cached_property
    def _means(self) -> "Means":
        from sidecar.chat.preparation import Means  # noqa: PLC0415 - not needed before ready

        return Means(self._models, self._retrieval, self._reader, self._agent_tools)

    async def start(self) -> None:
        """Take up what an earlier process left."""
        await self.conversations.recover()

    async def close(self) -> None:
        """End the replies that are being generated; their clients are told."""
        running = list(self._running)
        for turn in running:
            turn.stop("shutdown")
        if running:
            ends = [asyncio.ensure_future(turn.ended.wait()) for turn in running]
            _, late = await asyncio.wait(ends, timeout=STOP_SECONDS)
            for waiting in late:
                waiting.cancel()

    async def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation and end the replies that are being generated in it."""
        await self.conversations.delete(conversation_id)
        for turn in list(self._running):
            if turn.conversation_id == conversation_id:
                turn.stop("deleted")

    async def open(self, request: ChatRequest) -> "Turn":
        """Check a request, store its question and return the turn, whose events are the answer.

        Raises ``RESOURCE_NOT_FOUND`` (provider, conversation or message), ``PROVIDER_DISABLED``,
        ``MODEL_CAPABILITY_MISMATCH``, ``ATTACHMENT_NOT_FOUND``, ``VAULT_NOT_OPEN`` (attachments belong
        to a vault) and ``VALIDATION_ERROR``. After any of these nothing is stored.
        """
        from sidecar.chat.preparation import Asked, turn_of  # noqa: PLC0415 - not needed before ready

        if request.filters is not None and request.filters.folder:
            check_folder(request.filters.folder, "filters.folder")
        self._reader.check_tools(request.image_fallback_tools)
        target = await self._models.target(request.provider_id, request.model)
        if request.conversation_id is not None:
            await self.conversations.check(request.conversation_id, request.retry_message_id)
        attachments = await self._reader.known(request.attachments)
        context = request.workspace_context
        snapshot = Snapshot(context.file_path, context.content) if context else None
        reserved = await self._reserve(request, target, snapshot)
        asked = Asked(request, target, attachments, snapshot, reserved)
        turn = turn_of(self._means, asked, self.conversations, self._running.discard)
        self._running.add(turn)
        return turn

    async def _reserve(
        self, request: ChatRequest, target: ChatTarget, snapshot: Snapshot | None
    ) -> Reserved | None:
        if request.conversation_id is None:
            return None
        return await self.conversations.begin(
            Question(
                conversation_id=request.conversation_id,
                content=request.question,
                attachments=tuple(request.attachments),
                snapshot=snapshot,
                retry_message_id=request.retry_message_id,
                provider_id=target.provider_id,
                model=target.model,
            )
        )
