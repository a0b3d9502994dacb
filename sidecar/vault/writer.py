"""The writes of notes. Each runs alone, under the vault's write lock, to its end."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.vault.files import MAX_NOTE_BYTES, FileChangedError, NoteFile
from sidecar.vault.intake import PreparedNote, TypedTitle, resolve_title
from sidecar.vault.names import check_folder, safe_name, stem_of
from sidecar.vault.note_text import (
    encode,
    facts_of,
    hash_of,
    unique_tags,
    with_line_endings_of,
    with_tags,
)
from sidecar.vault.notes import CurrentNote, current_note, find_note, note_of_file, note_of_write
from sidecar.vault.schemas import Note, TranscriptOrigin
from sidecar.vault.session import VaultSession

# An editor that saves without end mustn't hold a request for ever.
WRITE_ATTEMPTS: Final = 5


class ForgetNote(Protocol):
    """Called in the transaction that puts a note into the trash."""

    def __call__(self, tx: Transaction, note_id: str, /) -> None:
        """Let go of the note."""
        ...


@dataclass(frozen=True, slots=True)
class NoteChange:
    """What is to change of a note; None stays as it is."""

    title: str | None
    content: str | None
    tags: Sequence[str] | None
    transcript: TranscriptOrigin | None


class NoteWriter:
    """Changes files, and with them the database and the index."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.forgetters: list[ForgetNote] = []

    async def create(
        self,
        session: VaultSession,
        title: str,
        content: str,
        folder: str,
        tags: Sequence[str],
        transcript: TranscriptOrigin | None,
    ) -> Note:
        """Write a new file."""
        folder = check_folder(folder)
        text = with_tags(content, unique_tags(tags)) if tags else content
        _check_size(text)

        def run() -> tuple[NoteFile, PreparedNote]:
            file = session.files.create(folder, safe_name(title), text)
            return file, session.intake.prepare(
                file, None, typed=TypedTitle(title), transcript=transcript, by_user=True
            )

        file, prepared = await asyncio.to_thread(run)
        await session.intake.store([prepared])
        return note_of_write(prepared, file)

    async def update(
        self, session: VaultSession, note_id: str, change: NoteChange, expected_hash: str | None
    ) -> Note:
        """Change a file that is as expected."""
        for _ in range(WRITE_ATTEMPTS):
            current = await current_note(session, self._database, note_id, locked=True)
            _check_hash(current.file, expected_hash)
            try:
                file, prepared = await asyncio.to_thread(_change, session, current, change)
            except FileChangedError:
                # Another program wrote in between: its text is what the change applies to.
                continue
            if prepared is None:
                return note_of_file(current, facts_of(file.content))
            await session.intake.store([prepared])
            return note_of_write(prepared, file)
        raise ProjectError("NOTE_CONTENT_CONFLICT")

    async def move(
        self, session: VaultSession, note_id: str, folder: str, expected_hash: str | None
    ) -> Note:
        """Move a file to another folder."""
        folder = check_folder(folder)
        current = await current_note(session, self._database, note_id, locked=True)
        _check_hash(current.file, expected_hash)

        def run() -> tuple[NoteFile, PreparedNote]:
            row = current.row
            path = session.files.move(row.path, folder, stem_of(row.path))
            moved = replace(current.file, path=path)
            return moved, session.intake.prepare(
                moved, row, former_transcript=current.transcript, by_user=True
            )

        moved, prepared = await asyncio.to_thread(run)
        await session.intake.store([prepared])
        return note_of_write(prepared, moved)

    async def trash(self, session: VaultSession, note_id: str, expected_hash: str | None) -> None:
        """Move a file into the trash."""
        current = await current_note(session, self._database, note_id, locked=True)
        _check_hash(current.file, expected_hash)
        trash_path = await asyncio.to_thread(session.files.trash, current.row.path)

        def write(tx: Transaction) -> None:
            session.intake.forget(tx, current.row, "trashed", trash_path)
            for forget in self.forgetters:
                forget(tx, note_id)

        await self._database.write(write)

    async def restore(self, session: VaultSession, note_id: str) -> Note:
        """Move a file out of the trash again."""
        found = await self._database.read(
            lambda conn: find_note(conn, session.vault_id, note_id, "trashed")
        )
        if found is None or found[0].trash_path is None:
            raise ProjectError("RESOURCE_NOT_FOUND")
        row, transcript = found
        trash_path = found[0].trash_path

        def run() -> tuple[NoteFile, PreparedNote]:
            if session.files.stamp(trash_path) is None:
                raise ProjectError("RESOURCE_NOT_FOUND")
            file = session.files.read(session.files.restore(trash_path, row.path))
            return file, session.intake.prepare(
                file, row, former_transcript=transcript, by_user=True
            )

        file, prepared = await asyncio.to_thread(run)
        await session.intake.store([prepared])
        return note_of_write(prepared, file)


def _change(
    session: VaultSession, current: CurrentNote, change: NoteChange
) -> tuple[NoteFile, PreparedNote | None]:
    """Write what is to change; returns no prepared note if that is nothing."""
    row, file = current.row, current.file
    text = file.content
    if change.content is not None:
        text = with_line_endings_of(change.content, text)
    if change.tags is not None:
        text = with_tags(text, unique_tags(change.tags))
    _check_size(text)
    shown, _ = resolve_title(row.path, facts_of(file.content), row.typed_title, row.typed_over)
    typed = None
    if change.title is not None and change.title != shown:
        typed = TypedTitle(change.title)
    if text == file.content and typed is None and change.transcript is None:
        return file, None
    if text != file.content:
        file = session.files.replace(row.path, text, bom=file.bom, expected=file.stamp)
    if typed is not None:
        path = session.files.move(row.path, row.folder, safe_name(typed.title))
        file = replace(file, path=path)
    return file, session.intake.prepare(
        file,
        row,
        typed=typed,
        transcript=change.transcript,
        former_transcript=current.transcript,
        by_user=True,
    )


def _check_size(text: str) -> None:
    # No character takes more than four bytes: most texts need no counting.
    if len(text) * 4 > MAX_NOTE_BYTES and len(encode(text, bom=False)) > MAX_NOTE_BYTES:
        raise ProjectError("PAYLOAD_TOO_LARGE", details={"limit_bytes": MAX_NOTE_BYTES})


def _check_hash(file: NoteFile, expected: str | None) -> None:
    if expected is None:
        return
    current = hash_of(file.content)
    if expected.lower() != current:
        raise ProjectError("NOTE_CONTENT_CONFLICT", details={"content_hash": current})
