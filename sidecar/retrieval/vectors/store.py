"""The tables of vector sets: which model made them, and which slot holds which block."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sidecar.kernel.database import Readable, Transaction
from sidecar.retrieval.blocks import BlockKind
from sidecar.retrieval.embedding import Source, VectorSpace

SetState = Literal["building", "ready"]


@dataclass(frozen=True, slots=True)
class VectorSet:
    """All vectors that one model made of one vault."""

    set_id: int
    vault_id: str
    state: SetState
    space: VectorSpace
    covered: int
    """Blocks up to this number have been embedded."""


@dataclass(frozen=True, slots=True)
class PendingBlock:
    """A block that is to be embedded."""

    block_no: int
    kind: BlockKind
    title: str
    headings: tuple[str, ...]
    text: str


def _set(row: sqlite3.Row) -> VectorSet:
    space = VectorSpace(
        row["model_id"],
        row["model_version"],
        row["dimension"],
        row["normalization"],
        row["source"],
        row["route"],
    )
    return VectorSet(row["set_id"], row["vault_id"], row["state"], space, row["covered"])


def find_set(
    conn: Readable, vault_id: str, source: Source, state: SetState = "ready"
) -> VectorSet | None:
    """Return the newest set of a vault in *state*."""
    row = conn.execute(
        "SELECT * FROM vector_sets WHERE vault_id = ? AND source = ? AND state = ?"
        " ORDER BY set_id DESC LIMIT 1",
        (vault_id, source, state),
    ).fetchone()
    return _set(row) if row else None


def get_set(conn: Readable, set_id: int) -> VectorSet | None:
    """Return a set."""
    row = conn.execute("SELECT * FROM vector_sets WHERE set_id = ?", (set_id,)).fetchone()
    return _set(row) if row else None


def create_set(tx: Transaction, vault_id: str, space: VectorSpace) -> int:
    """Create a set that is building and return its id."""
    cursor = tx.execute(
        "INSERT INTO vector_sets (vault_id, state, source, route, model_id, model_version,"
        " dimension, normalization, covered) VALUES (?, 'building', ?, ?, ?, ?, ?, ?, 0)",
        (
            vault_id,
            space.source,
            space.route,
            space.model_id,
            space.model_version,
            space.dimension,
            space.normalization,
        ),
    )
    return int(cursor.lastrowid or 0)


def delete_set(tx: Transaction, set_id: int) -> None:
    """Delete a set with its vectors."""
    tx.execute("DELETE FROM vectors WHERE set_id = ?", (set_id,))
    tx.execute("DELETE FROM vector_sets WHERE set_id = ?", (set_id,))


def make_ready(tx: Transaction, made: VectorSet) -> list[int]:
    """Let a set serve in the place of all others of its vault and source; returns those."""
    rows = tx.execute(
        "SELECT set_id FROM vector_sets WHERE vault_id = ? AND source = ? AND set_id <> ?",
        (made.vault_id, made.space.source, made.set_id),
    ).fetchall()
    former = [row[0] for row in rows]
    for set_id in former:
        delete_set(tx, set_id)
    tx.execute("UPDATE vector_sets SET state = 'ready' WHERE set_id = ?", (made.set_id,))
    return former


def all_set_ids(conn: Readable) -> set[int]:
    """Return the ids of all sets."""
    return {row[0] for row in conn.execute("SELECT set_id FROM vector_sets")}


def pending_blocks(conn: Readable, made: VectorSet, limit: int) -> list[PendingBlock]:
    """Return blocks that aren't embedded yet, in order."""
    rows = conn.execute(
        "SELECT b.block_no, b.kind, n.title, b.headings, b.text FROM search_blocks b"
        " JOIN search_notes n USING (note_no) WHERE b.block_no > ? AND n.vault_id = ?"
        " ORDER BY b.block_no LIMIT ?",
        (made.covered, made.vault_id, limit),
    )
    return [
        PendingBlock(row[0], row[1], row[2], tuple(row[3].split("\n")) if row[3] else (), row[4])
        for row in rows
    ]


def count_pending(conn: Readable, made: VectorSet) -> int:
    """Return how many blocks aren't embedded yet."""
    row = conn.execute(
        "SELECT count(*) FROM search_blocks b JOIN search_notes n USING (note_no)"
        " WHERE b.block_no > ? AND n.vault_id = ?",
        (made.covered, made.vault_id),
    ).fetchone()
    return int(row[0])


def add_vectors(
    tx: Transaction, set_id: int, slots: Iterable[tuple[int, int]], covered: int
) -> bool:
    """Store (block number, slot) pairs; False if the set is gone by now."""
    if get_set(tx, set_id) is None:
        return False
    tx.executemany(
        "INSERT OR REPLACE INTO vectors (set_id, block_no, slot) VALUES (?, ?, ?)",
        [(set_id, block_no, slot) for block_no, slot in slots],
    )
    tx.execute("UPDATE vector_sets SET covered = ? WHERE set_id = ?", (covered, set_id))
    return True


def slots_of(conn: Readable, set_id: int) -> list[tuple[int, int]]:
    """Return (block number, slot) of the blocks of a set that there still are."""
    rows = conn.execute(
        "SELECT v.block_no, v.slot FROM vectors v JOIN search_blocks b USING (block_no)"
        " WHERE v.set_id = ?",
        (set_id,),
    )
    return [(row[0], row[1]) for row in rows]


def drop_gone(tx: Transaction, set_id: int) -> list[int]:
    """Delete the vectors of blocks that are gone; returns the numbers of those blocks."""
    rows = tx.execute(
        "DELETE FROM vectors WHERE set_id = ? AND block_no NOT IN"
        " (SELECT block_no FROM search_blocks) RETURNING block_no",
        (set_id,),
    ).fetchall()
    return [row[0] for row in rows]
