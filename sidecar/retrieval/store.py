"""The tables of search: notes as far as filters need them, blocks, and the full text index."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, Final

from sidecar.kernel.database import Readable, Transaction
from sidecar.retrieval.blocks import BlockKind
from sidecar.retrieval.terms import searchable

TEXT_STATE: Final = "text"


Words = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class IndexedBlock:
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


def put_note(tx: Transaction, entry: NoteEntry) -> int:
    """Insert or update a note and return its number."""
    note_no = note_number(tx, entry.note_id)
    values = (
        entry.vault_id,
        entry.title,
        entry.file_path,
        entry.folder_key,
        entry.source_audio,
    )
    # Two plain statements and no upsert: that would have the full text index write out what it
    # gathers in memory at every note, which made indexing take half as long again.
    if note_no is None:
        cursor = tx.execute(
            "INSERT INTO search_notes (vault_id, title, file_path, folder_key, source_audio, note_id)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (*values, entry.note_id),
        )
        note_no = int(cursor.lastrowid or 0)
    else:
        tx.execute(
            "UPDATE search_notes SET vault_id = ?, title = ?, file_path = ?, folder_key = ?,"
            " source_audio = ? WHERE note_no = ?",
            (*values, note_no),
        )
    tx.execute("DELETE FROM search_tags WHERE note_no = ?", (note_no,))
    tx.executemany(
        "INSERT INTO search_tags (note_no, tag_key) VALUES (?, ?)",
        [(note_no, key) for key in entry.tag_keys],
    )
    return note_no


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


def insert_block(
    tx: Transaction, state: TextState, note_no: int, block: IndexedBlock, words: Words
) -> int:
    """Insert a block that is found by *words*, and return its number."""
    cursor = tx.execute(
        "INSERT INTO search_blocks (block_id, note_no, ordinal, kind, title, headings, start_char,"
        " end_char, text, start_time, end_time, speaker) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (block.block_id, note_no, *_values(block)),
    )
    block_no = int(cursor.lastrowid or 0)
    insert_text(tx, state.active, block_no, words)
    return block_no


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
            insert_text(tx, table, row.block_no, words_of(block))


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
    headings = searchable("\n".join(block.headings)) if block.headings else ""
    return searchable(block.title) if block.title else "", headings, searchable(block.text)


def insert_text(tx: Transaction, table: str, block_no: int, words: Words) -> None:
    """Write a block's words into one of the full text indexes."""
    tx.execute(
        f"INSERT INTO search_text_{table} (rowid, title, headings, body) VALUES (?, ?, ?, ?)",  # noqa: S608
        (block_no, *words),
    )


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
