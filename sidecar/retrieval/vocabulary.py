"""The words that notes are named by, for who has to recognise them."""

from sidecar.kernel.database import Database, Readable


class NoteVocabulary:
    """Titles, headings and tags of the notes, as the index knows them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def names(self, vault_id: str) -> list[list[str]]:
        """Return title, headings and tags of each note of a vault, newest note first."""
        return await self._database.read(lambda conn: _names(conn, vault_id))


def _names(conn: Readable, vault_id: str) -> list[list[str]]:
    rows = conn.execute(
        "SELECT note_no, title FROM search_notes WHERE vault_id = ? ORDER BY note_no DESC",
        (vault_id,),
    )
    names = {row["note_no"]: [row["title"]] for row in rows}
    for row in conn.execute(
        "SELECT DISTINCT b.note_no, b.headings FROM search_blocks b JOIN search_notes n USING (note_no)"
        " WHERE n.vault_id = ? AND b.headings <> ''",
        (vault_id,),
    ):
        names[row["note_no"]] += row["headings"].split("\n")
    # A heading without text below it is a block of its own.
    for row in conn.execute(
        "SELECT b.note_no, b.text FROM search_blocks b JOIN search_notes n USING (note_no)"
        " WHERE n.vault_id = ? AND b.kind = 'heading'",
        (vault_id,),
    ):
        names[row["note_no"]].append(row["text"].split("\n")[0].strip("# \t"))
    for row in conn.execute(
        "SELECT t.note_no, t.tag_key FROM search_tags t JOIN search_notes n USING (note_no)"
        " WHERE n.vault_id = ?",
        (vault_id,),
    ):
        names[row["note_no"]] += row["tag_key"].split("/")
    return list(names.values())
