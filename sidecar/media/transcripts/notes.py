"""Transcripts as notes: one paragraph a passage, with its time and its speaker if that is wanted."""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.media import store
from sidecar.media.attachments.recording_title import recording_title
from sidecar.media.attachments.service import AttachmentService
from sidecar.media.schemas import TranscriptNoteRequest
from sidecar.media.store import ExportedNote, StoredRevision
from sidecar.media.transcripts.note_templates import BUILT_IN, TEMPLATES
from sidecar.media.transcripts.revisions import RevisionService, named_segments
from sidecar.vault.schemas import Note, TranscriptOrigin, TranscriptPassage

# Characters that would turn spoken words into Markdown, and what begins a block at a line's start.
_INLINE: Final = re.compile(r"([\\`*_\[\]<>$~|])")
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_HASH: Final = re.compile(r"(?<!\S)#")
_BLOCK_START: Final = re.compile(r"^(?:([-+=])|(\d{1,9})([.)]))(?=\s|$|[-=])")
_FRONT_MATTER: Final = re.compile(
    r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)


class NoteWriter(Protocol):
    """What is needed of the vault."""

    async def create_note(
        self,
        title: str,
        content: str,
        folder: str = "",
        tags: Any = (),
        *,
        transcript: TranscriptOrigin | None = None,
    ) -> Note:
        """Write a new note and return it."""
        ...

    async def get_note(self, note_id: str) -> Note:
        """Return a note with its content, or raise ``RESOURCE_NOT_FOUND``."""
        ...

    async def update_note(
        self,
        note_id: str,
        *,
        content: str | None = None,
        expected_content_hash: str | None = None,
        transcript: TranscriptOrigin | None = None,
    ) -> Note:
        """Change a note and return it, or raise ``NOTE_CONTENT_CONFLICT``."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """A note, and whether this call made it."""

    note: Note
    created: bool


class TranscriptNotes:
    """Writes transcripts into the vault."""

    def __init__(
        self,
        database: Database,
        revisions: RevisionService,
        attachments: AttachmentService,
        vault: NoteWriter,
    ) -> None:
        self._database = database
        self._revisions = revisions
        self._attachments = attachments
        self._vault = vault
        self._turn = asyncio.Lock()

    async def write(self, job_id: str, request: TranscriptNoteRequest) -> WrittenNote:
        """Make a note of the current revision, or bring the one made earlier up to date."""
        job, revision = await self._revisions.current(job_id)
        layout = TEMPLATES.get(BUILT_IN if request.template_id is None else request.template_id)
        if layout is None:
            raise ProjectError("RESOURCE_NOT_FOUND")
        attachment_id = job.request["attachment_id"]
        passages = passages_of(revision)
        body = render(
            layout(passages), times=request.include_timestamps, speakers=request.include_speakers
        )
        origin = TranscriptOrigin(job_id, revision.revision, attachment_id, tuple(passages))
        title = (request.title or "").strip()
        title = title or await recording_title(self._attachments, attachment_id)
        options = _options_key(request, title)
        # Two calls at once must not both find that there is something to write.
        async with self._turn:
            if request.update_existing:
                note = await self._update(job_id, options, body, origin)
                return WrittenNote(note, created=False)
            note = await self._vault.create_note(title, body, request.folder, transcript=origin)
            await self._remember(job_id, options, note, revision.revision)
            return WrittenNote(note, created=True)

    async def _update(self, job_id: str, options: str, body: str, origin: TranscriptOrigin) -> Note:
        earlier = await self._database.read(
            lambda conn: store.latest_exported_note(conn, job_id, options)
        )
        if earlier is None:
            raise ProjectError("NOTE_UPDATE_BASELINE_MISSING")
        try:
            note = await self._vault.get_note(earlier.note_id)
        except ProjectError as error:
            if error.status == 404:
                raise ProjectError("NOTE_UPDATE_BASELINE_MISSING") from None
            raise
        front_matter, old_body = split_front_matter(note.content)
        unchanged = body_digest(old_body) == earlier.body_sha256
        # A kill between the writing of the file and of our record leaves the new text with the old record.
        already_written = body_digest(old_body) == body_digest(body)
        if not unchanged and not already_written:
            raise ProjectError("NOTE_CONTENT_CONFLICT", details={"note_id": note.note_id})
        if already_written and earlier.revision == origin.revision:
            return note
        note = await self._vault.update_note(
            note.note_id,
            content=front_matter + body,
            expected_content_hash=note.content_hash,
            transcript=origin,
        )
        await self._remember(job_id, options, note, origin.revision)
        return note

    async def _remember(self, job_id: str, options: str, note: Note, revision: int) -> None:
        digest = body_digest(split_front_matter(note.content)[1])
        exported = ExportedNote(note.note_id, revision, digest)
        await self._database.write(
            lambda tx: store.put_exported_note(tx, job_id, options, exported)
        )


def passages_of(revision: StoredRevision) -> list[TranscriptPassage]:
    """Return what the note's paragraphs say and where in the recording that is."""
    return [
        TranscriptPassage(
            text=segment["text"],
            start_time=segment["start_time"],
            end_time=segment["end_time"],
            speaker=segment["speaker"],
        )
        for segment in named_segments(revision)
        if segment["text"]
    ]


def render(passages: list[TranscriptPassage], *, times: bool, speakers: bool) -> str:
    """Return the note's Markdown: one paragraph for each of *passages*."""
    return (
        "".join(_paragraph(passage, times, speakers) + "\n\n" for passage in passages).rstrip("\n")
        + "\n"
    )


def _paragraph(passage: TranscriptPassage, times: bool, speakers: bool) -> str:
    prefix = f"[{clock_time(passage.start_time)}] " if times else ""
    if speakers and passage.speaker:
        prefix += f"**{escape_markdown(passage.speaker)}:** "
    text = escape_markdown(" ".join(passage.text.split()))
    if not prefix:
        text = _BLOCK_START.sub(_escaped_start, text)
    return prefix + text


def _escaped_start(match: re.Match[str]) -> str:
    return f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}"


def clock_time(seconds: float) -> str:
    """Return ``mm:ss``, or ``h:mm:ss`` from one hour on."""
    minutes, second = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{second:02}" if hours else f"{minutes:02}:{second:02}"


def escape_markdown(text: str) -> str:
    """Return *text* so that Markdown shows it as it is."""
    return _HASH.sub(r"\\#", _ENTITY.sub(r"\\&", _INLINE.sub(r"\\\1", text)))


def split_front_matter(content: str) -> tuple[str, str]:
    """Return the YAML front matter with its fences, and the body."""
    match = _FRONT_MATTER.match(content)
    return (content[: match.end()], content[match.end() :]) if match else ("", content)


def body_digest(body: str) -> str:
    """Return what tells whether a body was changed; line endings and outer blank lines don't count."""
    lines = body.replace("\r\n", "\n").strip("\n")
    return hashlib.sha256(lines.encode()).hexdigest()


def _options_key(request: TranscriptNoteRequest, title: str) -> str:
    options: dict[str, Any] = {
        "title": title,
        "folder": request.folder.strip("/"),
        "include_timestamps": request.include_timestamps,
        "include_speakers": request.include_speakers,
        "template_id": request.template_id,
    }
    return json.dumps(options, ensure_ascii=False, sort_keys=True)
