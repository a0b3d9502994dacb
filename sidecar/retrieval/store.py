"""The tables of search: notes as far as filters need them, blocks, and the full text index."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sidecar.kernel.database import Readable, Transaction
from sidecar.retrieval.blocks import BlockKind
from sidecar.retrieval.full_text.terms import FORMAT, searchable

TEXT_STATE: Final = "text"
FORMAT_STATE: Final = "text_format"
_BLOCK_COLUMNS: Final = (
    "block_no",
    "block_id",
    "note_no",
    "ordinal",
    "kind",
    "title",
    "headings",
    "start_char",
    "end_char",
    "text",
    "start_time",
    "end_time",
    "speaker",
)

Words = tuple[str, str, str]


class IndexedBlock(NamedTuple):
    """A block as it is stored. ``title`` and ``headings`` are the words that it is found by."""

    block_id: str
    ordinal: int
    kind: BlockKind
    title: str
    headings: tuple[str, ...]
    start: int
    end: int
    text: str
    start_time: float | None
    end_time: float | None
    speaker: str | None


class NewBlock(NamedTuple):
    """A block that isn't stored yet, and the words that it is found by."""

    note_no: int
    block: IndexedBlock
    words: Words


class NotePlace(NamedTuple):
    """A note's number, and whether it got that just now."""

    note_no: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A note as filters and hits need it."""

    note_id: str
    vault_id: str
    title: str
    file_path: str
    folder_key: str
    source_audio: str | None
    tag_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextState:
    """Which full text index serves, and how far a rebuild has filled the other one."""

    active: str
    building: bool
    copied: int

    @property
    def other(self) -> str:
        """The index that doesn't serve."""
        return "b" if self.active == "a" else "a"

    def holding(self, block_no: int) -> tuple[str, ...]:
        """Return the indexes that hold a block."""
        if self.building and block_no <= self.copied:
            return self.active, self.other
        return (self.active,)


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block of a note that is indexed."""

    block_no: int
    block: IndexedBlock


# -- state ---------------------------------------------------------------------------------------


def get_state(conn: Readable, key: str) -> Any:
    """Return a stored value, None if there is none."""
    row = conn.execute("SELECT value FROM search_state WHERE key = ?", (key,)).fetchone()
    return json.loads(row[0]) if row else None


def put_state(tx: Transaction, key: str, value: Any) -> None:
    """Store a value."""
    tx.execute(
        "INSERT INTO search_state (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, json.dumps(value, ensure_ascii=False)),
    )


def text_state(conn: Readable) -> TextState:
    """Return the state of the full text indexes."""
    stored = get_state(conn, TEXT_STATE) or {}
    return TextState(
        stored.get("active", "a"), stored.get("building", False), stored.get("copied", 0)
    )


def put_text_state(tx: Transaction, state: TextState) -> None:
    """Store the state of the full text indexes."""
    put_state(
        tx,
        TEXT_STATE,
        {"active": state.active, "building": state.building, "copied": state.copied},
    )


# -- notes ---------------------------------------------------------------------------------------


def put_notes(tx: Transaction, entries: Sequence[NoteEntry]) -> dict[str, NotePlace]:
    """Insert or update notes; returns where each is, by id."""
    ids = json.dumps([entry.note_id for entry in entries])
    known = dict(
        tx.execute(
            "SELECT note_id, note_no FROM search_notes"
            " WHERE note_id IN (SELECT value FROM json_each(?))",
            (ids,),
        ).fetchall()
    )
    # Plain statements and no upsert: that would have the full text index write out what it gathers
    # in memory at every note.
    former = [(*_note_values(entry), entry.note_id) for entry in entries if entry.note_id in known]
    tx.executemany(
        "UPDATE search_notes SET vault_id = ?, title = ?, file_path = ?, folder_key = ?,"
        " source_audio = ? WHERE note_id = ?",
        former,
    )
    tx.executemany("DELETE FROM search_tags WHERE note_no = ?", [(no,) for no in known.values()])
    last = tx.execute("SELECT coalesce(max(note_no), 0) FROM search_notes").fetchone()[0]
    new = [entry for entry in entries if entry.note_id not in known]
    places = {note_id: NotePlace(note_no, is_new=False) for note_id, note_no in known.items()}
    places |= {entry.note_id: NotePlace(no, is_new=True) for no, entry in enumerate(new, last + 1)}
    tx.insert_rows(
        "search_notes",
        ("note_no", "note_id", "vault_id", "title", "file_path", "folder_key", "source_audio"),
        [(places[entry.note_id].note_no, entry.note_id, *_note_values(entry)) for entry in new],
    )
    tx.insert_rows(
        "search_tags",
        ("note_no", "tag_key"),
        [(places[entry.note_id].note_no, key) for entry in entries for key in entry.tag_keys],
    )
    return places


def _note_values(entry: NoteEntry) -> tuple[Any, ...]:
    return entry.vault_id, entry.title, entry.file_path, entry.folder_key, entry.source_audio


def note_number(conn: Readable, note_id: str) -> int | None:
    """Return a note's number, None if it isn't indexed."""
    row = conn.execute("SELECT note_no FROM search_notes WHERE note_id = ?", (note_id,)).fetchone()
    return int(row[0]) if row else None


def delete_note(tx: Transaction, note_no: int) -> None:
    """Delete a note that has no blocks any more."""
    tx.execute("DELETE FROM search_notes WHERE note_no = ?", (note_no,))


# -- blocks --------------------------------------------------------------------------------------


def blocks_of(conn: Readable, note_no: int) -> dict[str, BlockRow]:
    """Return the blocks of a note by id."""
    rows = conn.execute("SELECT * FROM search_blocks WHERE note_no = ?", (note_no,))
    return {row["block_id"]: block_row(row) for row in rows}


def block_row(row: sqlite3.Row) -> BlockRow:
    """Return a row of ``search_blocks``."""
    return BlockRow(
        row["block_no"],
        IndexedBlock(
            row["block_id"],
            row["ordinal"],
            row["kind"],
            row["title"],
            tuple(row["headings"].split("\n")) if row["headings"] else (),
            row["start_char"],
            row["end_char"],
            row["text"],
            row["start_time"],
            row["end_time"],
            row["speaker"],
        ),
    )


def insert_blocks(tx: Transaction, state: TextState, new: Sequence[NewBlock]) -> None:
    """Insert blocks; the first ones of all say in which way their words are written."""
    if not new:
        return
    row = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = 'search_blocks'").fetchone()
    first = (row[0] if row else 0) + 1
    if row is None:
        put_state(tx, FORMAT_STATE, FORMAT)
    tx.insert_rows(
        "search_blocks",
        _BLOCK_COLUMNS,
        [
            (number, block.block_id, note_no, *_values(block))
            for number, (note_no, block, _) in enumerate(new, first)
        ],
    )
    insert_texts(
        tx, state.active, [(number, *words) for number, (_, _, words) in enumerate(new, first)]
    )


def update_block(tx: Transaction, state: TextState, row: BlockRow, block: IndexedBlock) -> None:
    """Update a block whose text is the same."""
    if row.block == block:
        return
    words_changed = (row.block.title, row.block.headings) != (block.title, block.headings)
    if words_changed:
        for table in state.holding(row.block_no):
            _delete_text(tx, table, row.block_no, row.block)
    tx.execute(
        "UPDATE search_blocks SET ordinal = ?, kind = ?, title = ?, headings = ?, start_char = ?,"
        " end_char = ?, text = ?, start_time = ?, end_time = ?, speaker = ? WHERE block_no = ?",
        (*_values(block), row.block_no),
    )
    if words_changed:
        for table in state.holding(row.block_no):
            insert_texts(tx, table, [(row.block_no, *words_of(block))])


def delete_block(tx: Transaction, state: TextState, row: BlockRow) -> None:
    """Delete a block."""
    for table in state.holding(row.block_no):
        _delete_text(tx, table, row.block_no, row.block)
    tx.execute("DELETE FROM search_blocks WHERE block_no = ?", (row.block_no,))


def _values(block: IndexedBlock) -> tuple[Any, ...]:
    return (
        block.ordinal,
        block.kind,
        block.title,
        "\n".join(block.headings),
        block.start,
        block.end,
        block.text,
        block.start_time,
        block.end_time,
        block.speaker,
    )


# -- full text -----------------------------------------------------------------------------------


def words_of(block: IndexedBlock) -> Words:
    """Return what the full text index holds of a block: title, headings and text."""
    return words_of_all([block])[0]


def words_of_all(blocks: Sequence[IndexedBlock]) -> list[Words]:
    """Return the words of a note's blocks; those of headings that they share are read once."""
    headings: dict[tuple[str, ...], str] = {(): ""}
    found = []
    for block in blocks:
        above = headings.get(block.headings)
        if above is None:
            above = headings[block.headings] = searchable("\n".join(block.headings))
        title = searchable(block.title) if block.title else ""
        found.append((title, above, searchable(block.text)))
    return found


def insert_texts(tx: Transaction, table: str, rows: Sequence[tuple[int, str, str, str]]) -> None:
    """Write blocks into one of the full text indexes: number, title, headings and text."""
    tx.insert_rows(f"search_text_{table}", ("rowid", "title", "headings", "body"), rows)


def _delete_text(tx: Transaction, table: str, block_no: int, block: IndexedBlock) -> None:
    # The index keeps no text: it has to be told which words to take out.
    name = f"search_text_{table}"
    tx.execute(
        f"INSERT INTO {name} ({name}, rowid, title, headings, body) VALUES ('delete', ?, ?, ?, ?)",  # noqa: S608
        (block_no, *words_of(block)),
    )


def clear_text(tx: Transaction, table: str) -> None:
    """Empty one of the full text indexes."""
    name = f"search_text_{table}"
    tx.execute(f"INSERT INTO {name} ({name}) VALUES ('delete-all')")  # noqa: S608 - our names


def blocks_after(conn: Readable, block_no: int, limit: int) -> list[BlockRow]:
    """Return at most *limit* blocks of all vaults after a number, in order."""
    rows = conn.execute(
        "SELECT * FROM search_blocks WHERE block_no > ? ORDER BY block_no LIMIT ?",
        (block_no, limit),
    )
    return [block_row(row) for row in rows]


def count_all_blocks(conn: Readable) -> int:
    """Return how many blocks all vaults have together."""
    return int(conn.execute("SELECT count(*) FROM search_blocks").fetchone()[0])


def indexed_note_ids(conn: Readable, vault_id: str) -> list[str]:
    """Return the ids of the notes of a vault that are indexed."""
    rows = conn.execute("SELECT note_id FROM search_notes WHERE vault_id = ?", (vault_id,))
    return [row[0] for row in rows]


def count_blocks(conn: Readable, vault_id: str) -> int:
    """Return how many blocks a vault has."""
    row = conn.execute(
        "SELECT count(*) FROM search_blocks JOIN search_notes USING (note_no) WHERE vault_id = ?",
        (vault_id,),
    ).fetchone()
    return int(row[0])
