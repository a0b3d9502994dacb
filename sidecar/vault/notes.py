"""A note as it is at this moment: what the database knows of it, and its file."""

import asyncio
from dataclasses import dataclass

from sidecar.kernel.database import Database, Readable
from sidecar.kernel.errors import ProjectError
from sidecar.vault import store
from sidecar.vault.files import NoteFile, SkippedError
from sidecar.vault.intake import PreparedNote, resolve_title
from sidecar.vault.list_store import ListedNote
from sidecar.vault.names import split_path
from sidecar.vault.note_text import TextFacts
from sidecar.vault.schemas import Note, NoteSummary, TranscriptOrigin, TranscriptReference
from sidecar.vault.session import VaultSession
from sidecar.vault.store import NoteRow, NoteState


@dataclass(frozen=True, slots=True)
class CurrentNote:
    """A note with its file."""

    row: NoteRow
    file: NoteFile
    transcript: TranscriptOrigin | None


def find_note(
    conn: Readable, vault_id: str, note_id: str, state: NoteState = "present"
) -> tuple[NoteRow, TranscriptOrigin | None] | None:
    """Return a note in *state* and the recording that it was made from."""
    row = store.get(conn, vault_id, note_id)
    if row is None or row.state != state:
        return None
    return row, store.transcript_of(conn, row.note_no)


async def current_note(
    session: VaultSession, database: Database, note_id: str, *, locked: bool = False
) -> CurrentNote:
    """Return a note and its file; raises ``RESOURCE_NOT_FOUND``.

    If the file isn't where it was, the vault is looked through once, unless the caller holds the
    write lock (*locked*), which that needs.
    """
    for attempt in (1, 2):
        found = await database.read(lambda conn: find_note(conn, session.vault_id, note_id))
        if found is None:
            break
        row, transcript = found
        try:
            file = await asyncio.to_thread(session.files.read, row.path)
        except SkippedError as skipped:
            session.changed({row.path})
            raise ProjectError("RESOURCE_NOT_FOUND", details={"reason": skipped.reason}) from None
        except FileNotFoundError:
            if locked or attempt == 2:
                session.changed(None)
                break
            await session.reconciler.scan()
            continue
        return CurrentNote(row, file, transcript)
    raise ProjectError("RESOURCE_NOT_FOUND")


def note_of_file(current: CurrentNote, facts: TextFacts) -> Note:
    """Return the note that a file holds."""
    row = current.row
    title, _ = resolve_title(row.path, facts, row.typed_title, row.typed_over)
    return Note(
        note_id=row.note_id,
        title=title,
        folder=row.folder,
        file_path=row.path,
        tags=list(facts.tags),
        content_hash=facts.content_hash,
        created_at=row.created_at,
        updated_at=row.updated_at,
        transcript=_reference(current.transcript),
        content=current.file.content,
    )


def note_of_write(prepared: PreparedNote, file: NoteFile) -> Note:
    """Return a note that was just written."""
    fields = prepared.fields
    return Note(
        note_id=prepared.note_id,
        title=fields.title,
        folder=split_path(fields.path)[0],
        file_path=fields.path,
        tags=list(fields.tags),
        content_hash=fields.content_hash,
        created_at=prepared.row.created_at if prepared.row else fields.created_at,
        updated_at=fields.updated_at,
        transcript=_reference(prepared.transcript),
        content=file.content,
    )


def summary_of(note: ListedNote) -> NoteSummary:
    """Return the item of a list."""
    row = note.row
    transcript = None
    if note.transcript is not None:
        transcript = TranscriptReference(job_id=note.transcript[0], revision=note.transcript[1])
    return NoteSummary(
        note_id=row.note_id,
        title=row.title,
        folder=row.folder,
        file_path=row.path,
        tags=note.tags,
        content_hash=row.content_hash,
        created_at=row.created_at,
        updated_at=row.updated_at,
        transcript=transcript,
    )


def _reference(origin: TranscriptOrigin | None) -> TranscriptReference | None:
    if origin is None:
        return None
    return TranscriptReference(job_id=origin.job_id, revision=origin.revision)
