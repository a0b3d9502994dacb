"""Attachments of a question: documents and recordings become text, pictures data URIs."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from sidecar.chat import prompts, store
from sidecar.chat.context_status import context_status
from sidecar.chat.prompt import Material
from sidecar.chat.store import AttachmentWords, StoredMessage
from sidecar.chat.turn_tools import ChatEvent, ImageTools, ToolSource
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.media.schemas import Attachment
from sidecar.media.service import MediaService

log = get_logger(__name__)

TEXT_CHARACTERS: Final = 200_000
"""The most of one attachment's text that a model is given."""
IMAGE_BYTES: Final = 5 * 1024 * 1024
MOST_IMAGES: Final = 8
_KEPT_IMAGE_CHARACTERS: Final = 40 * 1024 * 1024

_ORDER: Final[dict[ToolSource, int]] = {"mcp": 0, "plugin": 1}


class ExtractedText(Protocol):
    """The text of a document."""

    @property
    def text(self) -> str:
        """The text itself."""
        ...

    @property
    def truncated(self) -> bool:
        """Whether it goes on behind the limit."""
        ...


class Documents(Protocol):
    """What reads documents and pictures."""

    async def extract_text(
        self, path: Path, media_type: str, *, name: str, limit: int
    ) -> ExtractedText:
        """Return a document's text, or raise ``CHAT_ATTACHMENT_FAILED``."""
        ...

    async def image_data_uri(self, path: Path, *, name: str, max_bytes: int) -> str:
        """Return a picture as a data URI, or raise ``CHAT_ATTACHMENT_FAILED``."""
        ...


@dataclass(frozen=True, slots=True)
class ImageReading:
    """How a turn's pictures reach the model."""

    sees: bool
    """Whether the model takes pictures itself."""
    tools: Sequence[str] = ()
    """Otherwise these are tried, the first that works."""


class AttachmentReader:
    """Reads attachments for models, and remembers what it read for the questions that follow."""

    def __init__(
        self,
        database: Database,
        media: MediaService,
        documents: Documents,
        image_tools: ImageTools | None = None,
    ) -> None:
        self._database = database
        self._media = media
        self._documents = documents
        self._image_tools = image_tools
        self._images: OrderedDict[str, str] = OrderedDict()

    def check_tools(self, names: Sequence[str]) -> None:
        """Raise ``VALIDATION_ERROR`` for a name that is no registered tool of an MCP server or plugin."""
        for index, name in enumerate(names):
            if self._image_tools is None or self._image_tools.source(name) is None:
                place = ["body", "image_fallback_tools", index]
                message = "Not a registered tool of an MCP server or a plugin."
                raise ProjectError(
                    "VALIDATION_ERROR", details={"errors": [{"loc": place, "message": message}]}
                )

    def ordered(self, names: Sequence[str]) -> list[str]:
        """Return tools in the order in which they are tried: MCP servers' first."""
        tools = self._image_tools
        known = [(tools.source(name) if tools else None, name) for name in names]
        return [
            name for source, name in sorted(known, key=lambda found: _ORDER[found[0] or "plugin"])
        ]

    async def known(self, attachment_ids: Sequence[str]) -> list[Attachment]:
        """Return attachments, each once, or raise ``ATTACHMENT_NOT_FOUND``."""
        return [
            await self._media.attachments.get(attachment_id)
            for attachment_id in dict.fromkeys(attachment_ids)
        ]

    # -- the question's own --------------------------------------------------------------------

    async def read(
        self, attachments: Sequence[Attachment], images: ImageReading, material: Material
    ) -> AsyncGenerator[ChatEvent, None]:
        """Read *attachments* into *material* and tell how it goes on.

        Raises ``CHAT_ATTACHMENT_FAILED`` for the first that can't be read. Closing it ends the work.
        """
        for index, attachment in enumerate(attachments, 1):
            told = _Teller(attachment, index, len(attachments))
            yield told("attachment_reading")
            try:
                async with aclosing(self._read_one(attachment, images, material, told)) as steps:
                    async for event in steps:
                        yield event
            except ProjectError as error:
                raise _failure(attachment, error) from error
            yield told("attachment_ready")

    async def _read_one(
        self,
        attachment: Attachment,
        images: ImageReading,
        material: Material,
        told: "_Teller",
    ) -> AsyncGenerator[ChatEvent, None]:
        if attachment.kind == "image" and images.sees:
            material.images.append(await self._image(attachment))
            return
        words = (await self._words([attachment.attachment_id])).get(attachment.attachment_id)
        if words is None or not words.final:
            if attachment.kind == "image":
                words = await self._described(attachment, images.tools)
            elif attachment.kind == "document":
                words = await self._document(attachment)
            else:
                heard = _Transcription(self._media, attachment)
                async with aclosing(heard.progress()) as steps:
                    async for seconds, of_seconds in steps:
                        yield told("attachment_transcribing", seconds, of_seconds)
                words = heard.words()
            await self._keep(attachment, words)
        material.add(attachment.file_name, words.text[:TEXT_CHARACTERS])
        if words.truncated or len(words.text) > TEXT_CHARACTERS:
            yield told("attachment_truncated", truncated=True)

    async def _document(self, attachment: Attachment) -> AttachmentWords:
        file = await self._media.attachments.file(attachment.attachment_id)
        extracted = await self._documents.extract_text(
            file.path, attachment.mime_type, name=attachment.file_name, limit=TEXT_CHARACTERS
        )
        return AttachmentWords(extracted.text, extracted.truncated, final=True)

    async def _image(self, attachment: Attachment) -> str:
        """Return a picture's data URI; those used last stay in memory, since talks come back to them."""
        file = await self._media.attachments.file(attachment.attachment_id)
        uri = self._images.pop(attachment.attachment_id, None)
        if uri is None:
            uri = await self._documents.image_data_uri(
                file.path, name=attachment.file_name, max_bytes=IMAGE_BYTES
            )
        self._images[attachment.attachment_id] = uri
        while sum(map(len, self._images.values())) > _KEPT_IMAGE_CHARACTERS:
            self._images.popitem(last=False)
        return uri

    async def _described(self, attachment: Attachment, names: Sequence[str]) -> AttachmentWords:
        image = await self._image(attachment) if names else ""
        for name in self.ordered(names):
            assert self._image_tools is not None, "names were checked"
            try:
                text = await self._image_tools.describe(name, image)
            except ProjectError as error:
                log.warning("chat.image_tool_failed", extra={"tool": name, "reason": error.code})
                continue
            if text.strip():
                return AttachmentWords(text, truncated=False, final=True)
        raise ProjectError("MODEL_CAPABILITY_MISMATCH")

    # -- those of earlier questions ------------------------------------------------------------

    async def of_history(
        self, history: Sequence[StoredMessage], *, sees: bool, most_images: int
    ) -> dict[str, Material]:
        """Return what earlier questions came with, by message id, as far as it is still there.

        The newest *most_images* pictures are among it if the model *sees*.
        """
        sent = _sent_with(history)
        words = await self._words([one for ids in sent.values() for one in ids])
        found: dict[str, Material] = {}
        for message_id, attachment_ids in reversed(sent.items()):
            material = found[message_id] = Material()
            for attachment in await self._still_there(attachment_ids):
                read = words.get(attachment.attachment_id)
                if read is not None:
                    material.add(attachment.file_name, read.text[:TEXT_CHARACTERS])
                elif attachment.kind == "image" and sees and most_images > 0:
                    most_images -= 1
                    try:
                        material.images.append(await self._image(attachment))
                    except ProjectError as error:
                        log.info("chat.earlier_image_left_out", extra={"reason": error.code})
        return found

    async def _still_there(self, attachment_ids: Sequence[str]) -> list[Attachment]:
        found: list[Attachment] = []
        for attachment_id in attachment_ids:
            try:
                found.append(await self._media.attachments.get(attachment_id))
            except ProjectError:
                continue
        return found

    async def _words(self, attachment_ids: Sequence[str]) -> dict[str, AttachmentWords]:
        if not attachment_ids:
            return {}
        return await self._database.read(lambda conn: store.attachment_words(conn, attachment_ids))

    async def _keep(self, attachment: Attachment, words: AttachmentWords) -> None:
        await self._database.write(
            lambda tx: store.keep_attachment_words(tx, attachment.attachment_id, words)
        )


def _sent_with(history: Sequence[StoredMessage]) -> dict[str, list[str]]:
    """Return the attachments that each question of a branch was answered with."""
    sent: dict[str, list[str]] = {}
    question = None
    for message in history:
        if message.role == "user":
            question = message.message_id
            sent[question] = message.attachments
        elif question is not None and message.context_captured:
            sent[question] = message.attachments
    return {question: list(dict.fromkeys(ids)) for question, ids in sent.items() if ids}


@dataclass(frozen=True, slots=True)
class _Teller:
    attachment: Attachment
    index: int
    count: int

    def __call__(
        self,
        kind: Literal[
            "attachment_reading",
            "attachment_transcribing",
            "attachment_ready",
            "attachment_truncated",
        ],
        current: float | None = None,
        total: float | None = None,
        *,
        truncated: bool = False,
    ) -> ChatEvent:
        return context_status(
            kind,
            name=self.attachment.file_name,
            attachment_id=self.attachment.attachment_id,
            current=self.index if current is None else round(current, 1),
            total=self.count if total is None else round(total, 1),
            truncated=truncated,
        )


class _Transcription:
    """The transcription of one recording, with its progress."""

    def __init__(self, media: MediaService, attachment: Attachment) -> None:
        self._media = media
        self._attachment = attachment
        self._steps: asyncio.Queue[tuple[float, float] | None] = asyncio.Queue()
        self._transcribed = False
        self._words: AttachmentWords | None = None

    async def progress(self) -> AsyncGenerator[tuple[float, float], None]:
        """Transcribe, and yield the seconds that are done and how many there are."""
        task = asyncio.create_task(self._run())
        task.add_done_callback(self._end)
        try:
            while (step := await self._steps.get()) is not None:
                yield step
            self._words = await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _run(self) -> AttachmentWords:
        heard = await self._media.attachment_text(
            self._attachment.attachment_id, progress=self._reached
        )
        text = heard.text if heard.text.strip() else prompts.NO_SPEECH
        # A transcript that was there before is its owner's, who may change it.
        return AttachmentWords(text, heard.truncated, final=self._transcribed)

    async def _reached(self, seconds: float, of_seconds: float) -> None:
        self._transcribed = True
        self._steps.put_nowait((seconds, of_seconds))

    def _end(self, _: "asyncio.Task[AttachmentWords]") -> None:
        self._steps.put_nowait(None)

    def words(self) -> AttachmentWords:
        """Return what was heard, once the progress has ended."""
        assert self._words is not None
        return self._words


def _failure(attachment: Attachment, error: ProjectError) -> ProjectError:
    details = {"attachment_id": attachment.attachment_id, "name": attachment.file_name}
    if error.code == "CHAT_ATTACHMENT_FAILED":
        params, details = dict(error.params), {**error.details, **details}
    else:
        # The reason stands inside a sentence.
        params = {"reason": error.message().rstrip(".。")}
        details["reason"] = error.code
    params["name"] = attachment.file_name
    return ProjectError("CHAT_ATTACHMENT_FAILED", details=details, **params)
