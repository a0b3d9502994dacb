"""Which note a file is.

A note is the file at its path. A file at a new path is the note that vanished or was trashed with
the same text; else the one that vanished from that path; else one with the same front matter;
else a new note.
"""

from collections.abc import Sequence
from typing import Final

from sidecar.kernel.clock import utc_in
from sidecar.kernel.database import Readable
from sidecar.vault import store
from sidecar.vault.files import NoteFile, VaultFiles
from sidecar.vault.names import split_path
from sidecar.vault.note_text import TextFacts
from sidecar.vault.store import NoteRow

# A note that went this long ago isn't taken for one that was moved and edited at once.
JUST_VANISHED_SECONDS: Final = 120.0

ReadFile = tuple[NoteFile, TextFacts]
"""A file, and what its text says."""


def owners_of(
    conn: Readable,
    vault_id: str,
    files: VaultFiles,
    found: Sequence[ReadFile],
    rows: dict[str, NoteRow],
) -> dict[str, NoteRow]:
    """Return by path the notes that the *found* files are; *rows* are those at their paths.

    Runs on a reader's thread and looks whether the files of other notes are there.
    """
    owners = {file.path: rows[file.path] for file, _ in found if file.path in rows}
    strangers = [(file, facts) for file, facts in found if file.path not in rows]
    if not strangers:
        return owners
    taken = {row.note_id for row in owners.values()}
    search = _Search(conn, vault_id, files, strangers)
    for file, facts in strangers:
        owner = search.returned(file, facts, taken)
        if owner is not None:
            owners[file.path] = owner
            taken.add(owner.note_id)
    return owners


class _Search:
    """Looks for the notes that files at new paths are."""

    def __init__(
        self, conn: Readable, vault_id: str, files: VaultFiles, strangers: Sequence[ReadFile]
    ) -> None:
        self._conn = conn
        self._vault_id = vault_id
        self._files = files
        # Most files of a vault that is opened for the first time are like nothing that was here.
        self._texts = store.known_texts(
            conn, vault_id, [facts.content_hash for _, facts in strangers]
        )
        self._away = store.known_away(conn, vault_id, [file.path for file, _ in strangers])

    def returned(self, file: NoteFile, facts: TextFacts, taken: set[str]) -> NoteRow | None:
        """Return the note without a file that *file* is, if there is one."""
        same = self._same_text(file, facts, taken) if facts.content_hash in self._texts else []
        if same:
            return min(same, key=lambda row: _distance(row, file.path))
        if file.path in self._away:
            before = store.away_at(self._conn, self._vault_id, file.path)
            if before is not None and before.note_id not in taken:
                return before
        return self._same_front_matter(facts, taken)

    def _same_text(self, file: NoteFile, facts: TextFacts, taken: set[str]) -> list[NoteRow]:
        return [
            row
            for row in store.with_content(self._conn, self._vault_id, facts.content_hash)
            # An empty text is no evidence by itself.
            if row.note_id not in taken
            and (file.content.strip() or row.path == file.path)
            and self._has_no_file(row)
        ]

    def _same_front_matter(self, facts: TextFacts, taken: set[str]) -> NoteRow | None:
        if facts.front_matter_hash is None:
            return None
        alike = store.alone_with_front_matter(self._conn, self._vault_id, facts.front_matter_hash)
        if alike is None or alike.note_id in taken or alike.state == "trashed":
            return None
        just_vanished = alike.state == "present" or (
            alike.updated_at >= utc_in(-JUST_VANISHED_SECONDS)
        )
        return alike if self._has_no_file(alike) and just_vanished else None

    def _has_no_file(self, row: NoteRow) -> bool:
        """Whether the note's file is away, also if that isn't known yet."""
        return row.state != "present" or self._files.stamp(row.path) is None


def _distance(row: NoteRow, path: str) -> int:
    """Return how far a note's last path is from *path*: same, same name, same folder, other."""
    if row.path == path:
        return 0
    (folder, name), (other_folder, other_name) = split_path(row.path), split_path(path)
    return 1 if name == other_name else 2 if folder == other_folder else 3
