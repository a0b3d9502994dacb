"""The queries of a search over the tables of :mod:`sidecar.retrieval.store`."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sidecar.kernel.database import Readable
from sidecar.retrieval.store import IndexedBlock, block_row, text_state

# Weights of BM25 for the words of a note's title, of the headings above a block, and of the block.
WEIGHTS: Final = "4.0, 2.0, 1.0"


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
            block_row(row).block,
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class Passage:
    """A block's text as it stands in the note, and its place in the note's content."""

    text: str
    start: int
    end: int


def passages(conn: Readable, block_ids: Sequence[str]) -> dict[str, Passage]:
    """Return the texts of blocks by id."""
    rows = conn.execute(
        "SELECT block_id, text, start_char, end_char FROM search_blocks"
        " WHERE block_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(block_ids)),),
    )
    return {row[0]: Passage(row[1], row[2], row[3]) for row in rows}


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
