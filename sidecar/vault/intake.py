"""Takes a note's file into the database and the index, in one step that holds or doesn't."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from sidecar.kernel.clock import format_utc, utc_now
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.ids import new_id
from sidecar.vault import store
from sidecar.vault.files import NoteFile
from sidecar.vault.names import split_path, stem_of
from sidecar.vault.note_text import TextFacts, compare_key, facts_of, tag_key
from sidecar.vault.schemas import TranscriptOrigin
from sidecar.vault.store import NoteFields, NoteRow, NoteState

MAX_TITLE_CHARS = 500


class IndexStep:
    """What one transaction writes of a note into an index; the index alone knows what it holds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """What an index needs to know of a note."""

    note_id: str
    vault_id: str
    title: str
    file_path: str
    folder_key: str
    """The folder in the form in which folders are compared."""
    tag_keys: tuple[str, ...]
    """All tags in the form in which tags are compared."""
    front_matter_tags: tuple[str, ...]
    content: str
    body_start: int
    """Where the text after the front matter begins."""
    transcript: TranscriptOrigin | None


class NoteIndexer(Protocol):
    """Keeps an index in step with the notes, in the transactions that change them."""

    def prepare(self, note: IndexedNote) -> Sequence[IndexStep]:
        """Do the work that needs no database, on any thread; return the steps, in order.

        Each is one transaction's worth. A crash between two of them has the note prepared again.
        """
        ...

    def write(self, tx: Transaction, steps: Sequence[IndexStep]) -> None:
        """Write steps of different notes in one transaction."""
        ...

    def forget(self, tx: Transaction, note_id: str) -> None:
        """Take a note out of the index."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedNote:
    """A file that is ready to be stored."""

    note_id: str
    row: NoteRow | None
    fields: NoteFields
    transcript: TranscriptOrigin | None
    new_transcript: bool
    steps: Sequence[IndexStep]


@dataclass(frozen=True, slots=True)
class TypedTitle:
    """A title that a person gave, which no file name or front matter holds."""

    title: str


class Intake:
    """Prepares files on worker threads and stores them."""

    def __init__(self, vault_id: str, database: Database, indexer: NoteIndexer) -> None:
        self.vault_id = vault_id
        self._database = database
        self._indexer = indexer

    def prepare(
        self,
        file: NoteFile,
        row: NoteRow | None,
        *,
        facts: TextFacts | None = None,
        typed: TypedTitle | None = None,
        transcript: TranscriptOrigin | None = None,
        former_transcript: TranscriptOrigin | None = None,
        by_user: bool = False,
    ) -> PreparedNote:
        """Work out what a file says. *row* is the note that it is; without one it is a new note.

        *by_user* tells a change through this program from one that was found on disk.
        """
        facts = facts or facts_of(file.content)
        fields = _fields(file, row, facts, typed, by_user=by_user)
        note_id = row.note_id if row else new_id("note")
        origin = transcript or former_transcript
        steps = self._indexer.prepare(
            IndexedNote(
                note_id=note_id,
                vault_id=self.vault_id,
                title=fields.title,
                file_path=file.path,
                folder_key=compare_key(split_path(file.path)[0]),
                tag_keys=tuple(tag_key(tag) for tag in facts.tags),
                front_matter_tags=facts.front_matter_tags,
                content=file.content,
                body_start=facts.body_start,
                transcript=origin,
            )
        )
        return PreparedNote(note_id, row, fields, origin, transcript is not None, steps)

    async def store(self, prepared: Sequence[PreparedNote]) -> None:
        """Store what was prepared; returns once all of it is durable and searchable."""

        def first(tx: Transaction) -> None:
            self._store_notes(tx, prepared)
            self._indexer.write(tx, [note.steps[0] for note in prepared if note.steps])

        await self._database.write(first)
        for note in prepared:
            for step in note.steps[1:]:
                await self._database.write(lambda tx, step=step: self._indexer.write(tx, [step]))  # type: ignore[misc]
            if len(note.steps) > 1:
                await self._mark_whole(note)

    def _store_notes(self, tx: Transaction, prepared: Sequence[PreparedNote]) -> None:
        new = [(note.note_id, _stored_now(note)) for note in prepared if note.row is None]
        numbers = store.insert_all(tx, self.vault_id, new)
        for note in prepared:
            if note.row is not None:
                numbers[note.note_id] = note.row.note_no
                store.update(tx, note.row.note_no, _stored_now(note))
            if note.transcript is not None and note.new_transcript:
                store.put_transcript(tx, numbers[note.note_id], note.transcript)

    async def _mark_whole(self, note: PreparedNote) -> None:
        def write(tx: Transaction) -> None:
            row = store.get(tx, self.vault_id, note.note_id)
            if row is not None:
                store.set_stamp(tx, row.note_no, note.fields.size, note.fields.mtime_ns)

        await self._database.write(write)

    def forget(
        self, tx: Transaction, row: NoteRow, state: NoteState, trash_path: str | None
    ) -> None:
        """Take a note away whose file is gone or in the trash; its id is kept for its return."""
        store.set_away(tx, row.note_no, state, trash_path, utc_now())
        self._indexer.forget(tx, row.note_id)


def _stored_now(note: PreparedNote) -> NoteFields:
    """Return the fields of a note; if steps follow, a restart takes the file in again until then."""
    if len(note.steps) > 1:
        return replace(note.fields, mtime_ns=store.NOT_TAKEN_IN)
    return note.fields


def resolve_title(
    path: str, facts: TextFacts, typed_title: str | None, typed_over: str | None
) -> tuple[str, bool]:
    """Return a note's title, and whether it is the one that was typed."""
    if typed_title is not None and facts.front_matter_title == typed_over:
        return typed_title, True
    title = facts.front_matter_title or facts.heading or stem_of(path)
    return " ".join(title.split())[:MAX_TITLE_CHARS] or stem_of(path), False


def file_time(nanoseconds: int) -> str:
    """Return a file's time as the wire shows it."""
    seconds = min(max(nanoseconds / 1e9, 0.0), 253402300799.0)
    return format_utc(datetime.fromtimestamp(seconds, UTC))


def _fields(
    file: NoteFile,
    row: NoteRow | None,
    facts: TextFacts,
    typed: TypedTitle | None,
    *,
    by_user: bool,
) -> NoteFields:
    typed_title, typed_over = None, None
    if typed is not None:
        typed_title, typed_over = typed.title, facts.front_matter_title
    elif row is not None and (by_user or stem_of(row.path) == stem_of(file.path)):
        # Another program that renames the file names the note.
        typed_title, typed_over = row.typed_title, row.typed_over
    title, is_typed = resolve_title(file.path, facts, typed_title, typed_over)
    return NoteFields(
        path=file.path,
        title=title,
        typed_title=typed_title if is_typed else None,
        typed_over=typed_over if is_typed else None,
        content_hash=facts.content_hash,
        front_matter_hash=facts.front_matter_hash,
        tags=facts.tags,
        size=file.stamp.size,
        mtime_ns=file.stamp.mtime_ns,
        created_at=utc_now() if by_user else file_time(file.created_ns),
        updated_at=_updated_at(file, row, facts, by_user=by_user),
    )


def _updated_at(file: NoteFile, row: NoteRow | None, facts: TextFacts, *, by_user: bool) -> str:
    if by_user:
        return utc_now()
    written = file_time(file.stamp.mtime_ns)
    if row is None:
        return written
    if row.content_hash == facts.content_hash:
        return row.updated_at
    return max(written, row.updated_at)
