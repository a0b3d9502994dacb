"""The tables of vaults, notes, their tags and origins."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sidecar.kernel.database import Readable, Transaction
from sidecar.vault.names import split_path
from sidecar.vault.note_text import compare_key, tag_key
from sidecar.vault.schemas import TranscriptOrigin, TranscriptPassage

NoteState = Literal["present", "trashed", "missing"]

NOT_TAKEN_IN: Final = -1
"""The time of a file whose row or index isn't whole: it is read again."""


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as the database knows it."""

    note_no: int
    note_id: str
    vault_id: str
    state: NoteState
    path: str
    trash_path: str | None
    title: str
    typed_title: str | None
    typed_over: str | None
    content_hash: str
    front_matter_hash: str | None
    size: int
    mtime_ns: int
    created_at: str
    updated_at: str

    @property
    def folder(self) -> str:
        """The folder that the note lies in."""
        return split_path(self.path)[0]


@dataclass(frozen=True, slots=True)
class NoteFields:
    """What a taken-in file says about its note."""

    path: str
    title: str
    typed_title: str | None
    typed_over: str | None
    content_hash: str
    front_matter_hash: str | None
    tags: tuple[str, ...]
    size: int
    mtime_ns: int
    created_at: str
    updated_at: str


COLUMNS: Final = ", ".join(NoteRow.__slots__)
_INSERTED: Final = (
    "note_no",
    "note_id",
    "vault_id",
    "state",
    "path",
    "folder_key",
    "title",
    "title_key",
    "typed_title",
    "typed_over",
    "content_hash",
    "front_matter_hash",
    "size",
    "mtime_ns",
    "updated_at",
    "created_at",
)


def note_row(row: sqlite3.Row) -> NoteRow:
    """Return a row of ``notes``."""
    return NoteRow(*(row[name] for name in NoteRow.__slots__))


# -- vaults --------------------------------------------------------------------------------------


def vault_id_of(tx: Transaction, root: str, new_id: str, now: str) -> str:
    """Return the id of the vault at *root*, which gets *new_id* if it wasn't open before."""
    row = tx.execute(
        "INSERT INTO vaults (vault_id, root, opened_at) VALUES (?, ?, ?)"
        " ON CONFLICT (root) DO UPDATE SET opened_at = excluded.opened_at RETURNING vault_id",
        (new_id, root, now),
    ).fetchone()
    return str(row[0])


def known_vault_id(conn: Readable, root: str) -> str | None:
    """Return the id of the vault at *root* if it was open before."""
    row = conn.execute("SELECT vault_id FROM vaults WHERE root = ?", (root,)).fetchone()
    return str(row[0]) if row else None


# -- one note ------------------------------------------------------------------------------------


def get(conn: Readable, vault_id: str, note_id: str) -> NoteRow | None:
    """Return a note in whatever state it is."""
    row = conn.execute(
        f"SELECT {COLUMNS} FROM notes WHERE note_id = ? AND vault_id = ?",  # noqa: S608 - our columns
        (note_id, vault_id),
    ).fetchone()
    return note_row(row) if row else None


def at_paths(conn: Readable, vault_id: str, paths: Sequence[str]) -> dict[str, NoteRow]:
    """Return the present notes whose files lie at *paths*, by path."""
    rows = conn.execute(
        f"SELECT {COLUMNS} FROM notes INDEXED BY notes_by_path"  # noqa: S608 - our columns
        " WHERE vault_id = ? AND state = 'present' AND path IN (SELECT value FROM json_each(?))",
        (vault_id, json.dumps(list(paths))),
    )
    return {row["path"]: note_row(row) for row in rows}


def insert_all(
    tx: Transaction, vault_id: str, new: Sequence[tuple[str, NoteFields]]
) -> dict[str, int]:
    """Insert present notes, given with their ids, and return the number of each id."""
    last = tx.execute("SELECT coalesce(max(note_no), 0) FROM notes").fetchone()[0]
    tx.insert_rows(
        "notes",
        _INSERTED,
        [
            (number, note_id, vault_id, "present", *_values(fields), fields.created_at)
            for number, (note_id, fields) in enumerate(new, last + 1)
        ],
    )
    _put_tags(tx, [(number, fields.tags) for number, (_, fields) in enumerate(new, last + 1)])
    return {note_id: number for number, (note_id, _) in enumerate(new, last + 1)}


def update(tx: Transaction, note_no: int, fields: NoteFields) -> None:
    """Make a note present with *fields*."""
    tx.execute(
        "UPDATE notes SET state = 'present', trash_path = NULL, path = ?, folder_key = ?,"
        " title = ?, title_key = ?, typed_title = ?, typed_over = ?, content_hash = ?,"
        " front_matter_hash = ?, size = ?, mtime_ns = ?, updated_at = ? WHERE note_no = ?",
        (*_values(fields), note_no),
    )
    tx.execute("DELETE FROM note_tags WHERE note_no = ?", (note_no,))
    _put_tags(tx, [(note_no, fields.tags)])


def _values(fields: NoteFields) -> tuple[Any, ...]:
    return (
        fields.path,
        compare_key(split_path(fields.path)[0]),
        fields.title,
        compare_key(fields.title).casefold(),
        fields.typed_title,
        fields.typed_over,
        fields.content_hash,
        fields.front_matter_hash,
        fields.size,
        fields.mtime_ns,
        fields.updated_at,
    )


def _put_tags(tx: Transaction, tags: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Insert the tags of notes, given by number."""
    tx.insert_rows(
        "note_tags",
        ("note_no", "tag_key", "tag", "position"),
        [
            (note_no, tag_key(tag), tag, position)
            for note_no, of_note in tags
            for position, tag in enumerate(of_note)
        ],
    )


def set_stamp(tx: Transaction, note_no: int, size: int, mtime_ns: int) -> None:
    """Say that the file with this stamp has been taken in whole."""
    tx.execute(
        "UPDATE notes SET size = ?, mtime_ns = ? WHERE note_no = ?", (size, mtime_ns, note_no)
    )


def set_away(
    tx: Transaction, note_no: int, state: NoteState, trash_path: str | None, now: str
) -> None:
    """Say that a note's file is in the trash, or gone."""
    tx.execute(
        "UPDATE notes SET state = ?, trash_path = ?, updated_at = ? WHERE note_no = ?",
        (state, trash_path, now, note_no),
    )


def with_content(conn: Readable, vault_id: str, content_hash: str) -> list[NoteRow]:
    """Return notes in whatever state that had this text, the last to change first."""
    rows = conn.execute(
        f"SELECT {COLUMNS} FROM notes WHERE vault_id = ? AND content_hash = ?"  # noqa: S608
        " ORDER BY updated_at DESC, note_no DESC LIMIT 50",
        (vault_id, content_hash),
    )
    return [note_row(row) for row in rows]


def known_texts(conn: Readable, vault_id: str, hashes: Sequence[str]) -> set[str]:
    """Return those of the content hashes that a note in whatever state had."""
    rows = conn.execute(
        "SELECT DISTINCT content_hash FROM notes INDEXED BY notes_by_content"
        " WHERE vault_id = ? AND content_hash IN (SELECT value FROM json_each(?))",
        (vault_id, json.dumps(list(hashes))),
    )
    return {row[0] for row in rows}


def known_away(conn: Readable, vault_id: str, paths: Sequence[str]) -> set[str]:
    """Return those of *paths* that a note vanished from."""
    rows = conn.execute(
        "SELECT DISTINCT path FROM notes INDEXED BY notes_away_by_path"
        " WHERE vault_id = ? AND state = 'missing' AND path IN (SELECT value FROM json_each(?))",
        (vault_id, json.dumps(list(paths))),
    )
    return {row[0] for row in rows}


def alone_with_front_matter(
    conn: Readable, vault_id: str, front_matter_hash: str
) -> NoteRow | None:
    """Return the note with this front matter if there is only one.

    What many notes share came from a template and says nothing.
    """
    rows = conn.execute(
        f"SELECT {COLUMNS} FROM notes WHERE vault_id = ? AND front_matter_hash = ? LIMIT 2",  # noqa: S608
        (vault_id, front_matter_hash),
    ).fetchall()
    return note_row(rows[0]) if len(rows) == 1 else None


def away_at(conn: Readable, vault_id: str, path: str) -> NoteRow | None:
    """Return the note that was last at *path* and vanished from there."""
    row = conn.execute(
        f"SELECT {COLUMNS} FROM notes WHERE vault_id = ? AND path = ?"  # noqa: S608 - our columns
        " AND state = 'missing' ORDER BY updated_at DESC, note_no DESC LIMIT 1",
        (vault_id, path),
    ).fetchone()
    return note_row(row) if row else None


# -- transcripts ---------------------------------------------------------------------------------


def put_transcript(tx: Transaction, note_no: int, origin: TranscriptOrigin) -> None:
    """Store the recording that a note was made from."""
    passages = [
        [passage.text, passage.start_time, passage.end_time, passage.speaker]
        for passage in origin.passages
    ]
    tx.execute(
        "INSERT OR REPLACE INTO note_transcripts (note_no, job_id, revision, source_audio, passages)"
        " VALUES (?, ?, ?, ?, ?)",
        (
            note_no,
            origin.job_id,
            origin.revision,
            origin.source_audio,
            json.dumps(passages, ensure_ascii=False),
        ),
    )


def transcript_of(conn: Readable, note_no: int) -> TranscriptOrigin | None:
    """Return the recording that a note was made from."""
    row = conn.execute(
        "SELECT job_id, revision, source_audio, passages FROM note_transcripts WHERE note_no = ?",
        (note_no,),
    ).fetchone()
    if row is None:
        return None
    passages = tuple(TranscriptPassage(*passage) for passage in json.loads(row["passages"]))
    return TranscriptOrigin(row["job_id"], row["revision"], row["source_audio"], passages)
