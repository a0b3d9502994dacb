"""Lists and counts over the tables of :mod:`sidecar.vault.store`, and the files that were skipped."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.paging import PageQuery
from sidecar.vault.note_text import compare_key, tag_key
from sidecar.vault.schemas import NoteSort
from sidecar.vault.store import COLUMNS, NoteRow, note_row

_ORDER: Final[dict[NoteSort, str]] = {
    "updated_at": "updated_at DESC, note_no DESC",
    "created_at": "created_at DESC, note_no DESC",
    "title": "title_key, note_no",
}


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
        f"SELECT {COLUMNS} FROM notes WHERE {where} ORDER BY {_ORDER[wanted.sort]}"  # noqa: S608
        " LIMIT ? OFFSET ?",
        (*parameters, page.limit, page.offset),
    ).fetchall()
    return _with_details(conn, [note_row(row) for row in rows]), total


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
        f"SELECT {COLUMNS} FROM notes WHERE vault_id = ? AND state = 'trashed'"  # noqa: S608
        f" ORDER BY {_ORDER['updated_at']} LIMIT ? OFFSET ?",
        (vault_id, page.limit, page.offset),
    )
    return [note_row(row) for row in rows], total


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
