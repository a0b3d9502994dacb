"""Which notes name something that isn't a note: an attachment whose address stands in their text."""

from sidecar.kernel.database import Readable
from sidecar.retrieval import store
from sidecar.retrieval.full_text.terms import searchable


def notes_naming(conn: Readable, name: str) -> list[str]:
    """Return the ids of the notes, of any vault, in whose text *name* stands as it is."""
    table = store.text_state(conn).active
    words = searchable(name).replace('"', " ")
    rows = conn.execute(
        f"SELECT DISTINCT n.note_id FROM search_text_{table} t"  # noqa: S608 - one of two letters
        " JOIN search_blocks b ON b.block_no = t.rowid JOIN search_notes n USING (note_no)"
        f" WHERE search_text_{table} MATCH ? AND instr(b.text, ?) > 0 ORDER BY n.note_id",
        (f'"{words}"', name),
    )
    return [row["note_id"] for row in rows]
