"""The tables of search: notes as far as filters need them, blocks, and the full text index."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sidecar.kernel.database import Readable, Transaction
from sidecar.retrieval.terms import searchable

TEXT_STATE: Final = "text"
# Weights of BM25 for the words of a note's title, of the headings above a block, and of the block.
WEIGHTS: Final = "4.0, 2.0, 1.0"


Words = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class IndexedBlock:
    """A block as it is stored. ``title`` and ``headings`` are the words that it is found by."""

    block_id: str
    ordinal: int
    kind: str
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
    return {row["block_id"]: _block_row(row) for row in rows}


def _block_row(row: sqlite3.Row) -> BlockRow:
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
    return [_block_row(row) for row in rows]


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


# -- searching -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which notes are searched; None and empty are no filter."""

    vault_id: str
    folder_key: str | None = None
    tag_keys: tuple[str, ...] = ()
    note_ids: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        """Whether anything but the vault is asked for."""
        return bool(self.folder_key or self.tag_keys or self.note_ids)


def _filter_sql(wanted: SearchFilter) -> tuple[str, list[Any]]:
    """Return a query for the numbers of the notes that are searched."""
    conditions, parameters = ["vault_id = ?"], [wanted.vault_id]
    if wanted.folder_key:
        # "0" is the character after "/".
        conditions.append("(folder_key = ? OR (folder_key >= ? AND folder_key < ?))")
        parameters += [wanted.folder_key, f"{wanted.folder_key}/", f"{wanted.folder_key}0"]
    for key in wanted.tag_keys:
        conditions.append("note_no IN (SELECT note_no FROM search_tags WHERE tag_key = ?)")
        parameters.append(key)
    if wanted.note_ids:
        conditions.append("note_id IN (SELECT value FROM json_each(?))")
        parameters.append(json.dumps(wanted.note_ids))
    return f"SELECT note_no FROM search_notes WHERE {' AND '.join(conditions)}", parameters  # noqa: S608


def _needs_filter(conn: Readable, wanted: SearchFilter) -> bool:
    if wanted.is_set:
        return True
    row = conn.execute(
        "SELECT EXISTS (SELECT 1 FROM search_notes WHERE vault_id < ?)"
        " OR EXISTS (SELECT 1 FROM search_notes WHERE vault_id > ?)",
        (wanted.vault_id, wanted.vault_id),
    ).fetchone()
    return bool(row[0])


def match_text(
    conn: Readable, expression: str, wanted: SearchFilter, limit: int
) -> list[tuple[int, float]]:
    """Return (block number, score) of the best matches, higher scores first."""
    table = f"search_text_{text_state(conn).active}"
    condition = ""
    parameters: list[Any] = []
    if _needs_filter(conn, wanted):
        query, parameters = _filter_sql(wanted)
        condition = f" AND rowid IN (SELECT block_no FROM search_blocks WHERE note_no IN ({query}))"  # noqa: S608
    rows = conn.execute(
        f"SELECT rowid, bm25({table}, {WEIGHTS}) AS rank FROM {table}"  # noqa: S608 - our names
        f" WHERE {table} MATCH ?{condition} ORDER BY rank, rowid LIMIT ?",
        (expression, *parameters, limit),
    )
    return [(row[0], -row[1]) for row in rows]


def count_text(conn: Readable, expression: str, limit: int) -> int:
    """Return how many blocks of all vaults match, counted up to *limit*."""
    table = f"search_text_{text_state(conn).active}"
    row = conn.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)",  # noqa: S608
        (expression, limit),
    ).fetchone()
    return int(row[0])


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A block with what a hit tells of its note."""

    block_no: int
    note_id: str
    note_title: str
    file_path: str
    source_audio: str | None
    block: IndexedBlock


def load_blocks(conn: Readable, numbers: Sequence[int]) -> dict[int, FoundBlock]:
    """Return blocks by number."""
    rows = conn.execute(
        "SELECT b.*, n.note_id, n.title AS note_title, n.file_path, n.source_audio"
        " FROM search_blocks b JOIN search_notes n USING (note_no)"
        " WHERE b.block_no IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    return {
        row["block_no"]: FoundBlock(
            row["block_no"],
            row["note_id"],
            row["note_title"],
            row["file_path"],
            row["source_audio"],
            _block_row(row).block,
        )
        for row in rows
    }


def existing(conn: Readable, numbers: Sequence[int]) -> set[int]:
    """Return those of the block numbers that there still are."""
    rows = conn.execute(
        "SELECT block_no FROM search_blocks WHERE block_no IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    return {row[0] for row in rows}


def numbers_allowed(conn: Readable, wanted: SearchFilter) -> Iterable[int] | None:
    """Return the numbers of the blocks that are searched, None for all."""
    if not _needs_filter(conn, wanted):
        return None
    query, parameters = _filter_sql(wanted)
    rows = conn.execute(
        f"SELECT block_no FROM search_blocks WHERE note_no IN ({query})",  # noqa: S608 - our query
        parameters,
    )
    return [row[0] for row in rows]
