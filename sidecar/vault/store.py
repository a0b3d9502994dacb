"""The tables of vaults, notes, their tags and origins."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.paging import PageQuery
from sidecar.vault.names import split_path
from sidecar.vault.note_text import compare_key, tag_key
from sidecar.vault.schemas import NoteSort, TranscriptOrigin, TranscriptPassage

NoteState = Literal["present", "trashed", "missing"]

NOT_TAKEN_IN: Final = -1
"""The time of a file whose row or index isn't whole: it is read again."""

_ORDER: Final[dict[NoteSort, str]] = {
    "updated_at": "updated_at DESC, note_no DESC",
    "created_at": "created_at DESC, note_no DESC",
    "title": "title_key, note_no",
}


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


_COLUMNS: Final = ", ".join(NoteRow.__slots__)


def _row(row: sqlite3.Row) -> NoteRow:
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
        f"SELECT {_COLUMNS} FROM notes WHERE note_id = ? AND vault_id = ?",  # noqa: S608 - our columns
        (note_id, vault_id),
    ).fetchone()
    return _row(row) if row else None


def at_path(conn: Readable, vault_id: str, path: str) -> NoteRow | None:
    """Return the present note whose file lies at *path*."""
    row = conn.execute(
        f"SELECT {_COLUMNS} FROM notes"  # noqa: S608 - our columns
        " WHERE vault_id = ? AND path = ? AND state = 'present'",
        (vault_id, path),
    ).fetchone()
    return _row(row) if row else None


def tags_of(conn: Readable, note_no: int) -> list[str]:
    """Return a note's tags in the order of the text."""
    rows = conn.execute("SELECT tag FROM note_tags WHERE note_no = ? ORDER BY position", (note_no,))
    return [row[0] for row in rows]


def insert(tx: Transaction, vault_id: str, note_id: str, fields: NoteFields) -> int:
    """Insert a present note and return its number."""
    cursor = tx.execute(
        "INSERT INTO notes (note_id, vault_id, state, path, folder_key, title, title_key,"
        " typed_title, typed_over, content_hash, front_matter_hash, size, mtime_ns, created_at,"
        " updated_at) VALUES (?, ?, 'present', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (note_id, vault_id, *_values(fields), fields.created_at, fields.updated_at),
    )
    note_no = int(cursor.lastrowid or 0)
    _put_tags(tx, note_no, fields.tags)
    return note_no


def update(tx: Transaction, note_no: int, fields: NoteFields) -> None:
    """Make a note present with *fields*."""
    tx.execute(
        "UPDATE notes SET state = 'present', trash_path = NULL, path = ?, folder_key = ?,"
        " title = ?, title_key = ?, typed_title = ?, typed_over = ?, content_hash = ?,"
        " front_matter_hash = ?, size = ?, mtime_ns = ?, updated_at = ? WHERE note_no = ?",
        (*_values(fields), fields.updated_at, note_no),
    )
    tx.execute("DELETE FROM note_tags WHERE note_no = ?", (note_no,))
    _put_tags(tx, note_no, fields.tags)


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
    )


def _put_tags(tx: Transaction, note_no: int, tags: Sequence[str]) -> None:
    tx.executemany(
        "INSERT INTO note_tags (note_no, tag_key, tag, position) VALUES (?, ?, ?, ?)",
        [(note_no, tag_key(tag), tag, position) for position, tag in enumerate(tags)],
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
        f"SELECT {_COLUMNS} FROM notes WHERE vault_id = ? AND content_hash = ?"  # noqa: S608
        " ORDER BY updated_at DESC, note_no DESC LIMIT 50",
        (vault_id, content_hash),
    )
    return [_row(row) for row in rows]


def alone_with_front_matter(
    conn: Readable, vault_id: str, front_matter_hash: str
) -> NoteRow | None:
    """Return the note with this front matter if there is only one.

    What many notes share came from a template and says nothing.
    """
    rows = conn.execute(
        f"SELECT {_COLUMNS} FROM notes WHERE vault_id = ? AND front_matter_hash = ? LIMIT 2",  # noqa: S608
        (vault_id, front_matter_hash),
    ).fetchall()
    return _row(rows[0]) if len(rows) == 1 else None


def away_at(conn: Readable, vault_id: str, path: str) -> NoteRow | None:
    """Return the note that was last at *path* and vanished from there."""
    row = conn.execute(
        f"SELECT {_COLUMNS} FROM notes WHERE vault_id = ? AND path = ?"  # noqa: S608 - our columns
        " AND state = 'missing' ORDER BY updated_at DESC, note_no DESC LIMIT 1",
        (vault_id, path),
    ).fetchone()
    return _row(row) if row else None


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


# -- lists ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note of a list with its tags and origin."""

    row: NoteRow
    tags: list[str]
    transcript: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes a list shows, and in which order."""

    folder: str | None = None
    tag: str | None = None
    title: str | None = None
    sort: NoteSort = "updated_at"


def folder_condition(folder: str) -> tuple[str, list[str]]:
    """Return the condition on ``folder_key`` for a folder and those below it."""
    key = compare_key(folder)
    if not key:
        return "1", []
    # "0" is the character after "/".
    return "(folder_key = ? OR (folder_key >= ? AND folder_key < ?))", [key, f"{key}/", f"{key}0"]


def list_notes(
    conn: Readable, vault_id: str, wanted: NoteFilter, page: PageQuery
) -> tuple[list[ListedNote], int]:
    """Return a page of the present notes and how many match."""
    conditions, parameters = ["vault_id = ?", "state = 'present'"], [vault_id]
    if wanted.folder:
        condition, values = folder_condition(wanted.folder)
        conditions.append(condition)
        parameters += values
    if wanted.tag is not None:
        conditions.append("note_no IN (SELECT note_no FROM note_tags WHERE tag_key = ?)")
        parameters.append(tag_key(wanted.tag.removeprefix("#")))
    if wanted.title:
        conditions.append("instr(title_key, ?) > 0")
        parameters.append(compare_key(wanted.title).casefold())
    where = " AND ".join(conditions)
    total = conn.execute(f"SELECT count(*) FROM notes WHERE {where}", parameters).fetchone()[0]  # noqa: S608
    rows = conn.execute(
        f"SELECT {_COLUMNS} FROM notes WHERE {where} ORDER BY {_ORDER[wanted.sort]}"  # noqa: S608
        " LIMIT ? OFFSET ?",
        (*parameters, page.limit, page.offset),
    ).fetchall()
    return _with_details(conn, [_row(row) for row in rows]), total


def _with_details(conn: Readable, rows: list[NoteRow]) -> list[ListedNote]:
    numbers = [row.note_no for row in rows]
    marks = ",".join("?" * len(numbers))
    tags: dict[int, list[str]] = {number: [] for number in numbers}
    for note_no, tag in conn.execute(
        f"SELECT note_no, tag FROM note_tags WHERE note_no IN ({marks}) ORDER BY position",  # noqa: S608
        numbers,
    ):
        tags[note_no].append(tag)
    origins = {
        row["note_no"]: (row["job_id"], row["revision"])
        for row in conn.execute(
            f"SELECT note_no, job_id, revision FROM note_transcripts WHERE note_no IN ({marks})",  # noqa: S608
            numbers,
        )
    }
    return [ListedNote(row, tags[row.note_no], origins.get(row.note_no)) for row in rows]


def count_present(conn: Readable, vault_id: str) -> int:
    """Return how many notes the vault has."""
    row = conn.execute(
        "SELECT count(*) FROM notes WHERE vault_id = ? AND state = 'present'", (vault_id,)
    ).fetchone()
    return int(row[0])


def counts_by_folder(conn: Readable, vault_id: str) -> dict[str, int]:
    """Return folder key → notes that lie directly in it."""
    rows = conn.execute(
        "SELECT folder_key, count(*) FROM notes WHERE vault_id = ? AND state = 'present'"
        " GROUP BY folder_key",
        (vault_id,),
    )
    return {row[0]: row[1] for row in rows}


def tag_counts(conn: Readable, vault_id: str) -> list[tuple[str, int]]:
    """Return (tag, notes), ordered by tag."""
    rows = conn.execute(
        "SELECT t.tag, min(t.note_no), count(*) FROM note_tags t JOIN notes n USING (note_no)"
        " WHERE n.vault_id = ? AND n.state = 'present' GROUP BY t.tag_key ORDER BY t.tag_key",
        (vault_id,),
    )
    return [(row[0], row[2]) for row in rows]


def stamps(conn: Readable, vault_id: str) -> dict[str, tuple[int, int, int]]:
    """Return path → (size, time, note number) of all present notes."""
    rows = conn.execute(
        "SELECT path, size, mtime_ns, note_no FROM notes WHERE vault_id = ? AND state = 'present'",
        (vault_id,),
    )
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def present_ids(conn: Readable, vault_id: str) -> set[str]:
    """Return the ids of all present notes."""
    rows = conn.execute(
        "SELECT note_id FROM notes WHERE vault_id = ? AND state = 'present'", (vault_id,)
    )
    return {row[0] for row in rows}


def list_trashed(conn: Readable, vault_id: str, page: PageQuery) -> tuple[list[NoteRow], int]:
    """Return a page of the notes in the trash, the last deleted first, and how many there are."""
    total = conn.execute(
        "SELECT count(*) FROM notes WHERE vault_id = ? AND state = 'trashed'", (vault_id,)
    ).fetchone()[0]
    rows = conn.execute(
        f"SELECT {_COLUMNS} FROM notes WHERE vault_id = ? AND state = 'trashed'"  # noqa: S608
        f" ORDER BY {_ORDER['updated_at']} LIMIT ? OFFSET ?",
        (vault_id, page.limit, page.offset),
    )
    return [_row(row) for row in rows], total


# -- skipped files -------------------------------------------------------------------------------


def put_skipped(tx: Transaction, vault_id: str, path: str, reason: str, size: int) -> None:
    """Remember that a file was skipped."""
    tx.execute(
        "INSERT OR REPLACE INTO skipped_files (vault_id, path, reason, size) VALUES (?, ?, ?, ?)",
        (vault_id, path, reason, size),
    )


def clear_skipped(tx: Transaction, vault_id: str, paths: Iterable[str]) -> None:
    """Forget that files were skipped."""
    tx.executemany(
        "DELETE FROM skipped_files WHERE vault_id = ? AND path = ?",
        [(vault_id, path) for path in paths],
    )


def skipped_paths(conn: Readable, vault_id: str) -> dict[str, str]:
    """Return path → reason of all skipped files."""
    rows = conn.execute("SELECT path, reason FROM skipped_files WHERE vault_id = ?", (vault_id,))
    return {row[0]: row[1] for row in rows}


def skipped_sizes(conn: Readable, vault_id: str) -> dict[str, int]:
    """Return path → size of all skipped files."""
    rows = conn.execute("SELECT path, size FROM skipped_files WHERE vault_id = ?", (vault_id,))
    return {row[0]: row[1] for row in rows}


def list_skipped(
    conn: Readable, vault_id: str, page: PageQuery
) -> tuple[list[tuple[str, str, int]], int]:
    """Return a page of (path, reason, size) and how many there are."""
    total = conn.execute(
        "SELECT count(*) FROM skipped_files WHERE vault_id = ?", (vault_id,)
    ).fetchone()[0]
    rows = conn.execute(
        "SELECT path, reason, size FROM skipped_files WHERE vault_id = ? ORDER BY path"
        " LIMIT ? OFFSET ?",
        (vault_id, page.limit, page.offset),
    )
    return [(row[0], row[1], row[2]) for row in rows], total
