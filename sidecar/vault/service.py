"""The notes of the open vault: what other parts of the program and the API do with them."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.kernel.setting_store import get_setting, put_setting
from sidecar.vault import list_store, store
from sidecar.vault.intake import IndexedNote, IndexStep, NoteIndexer, file_time
from sidecar.vault.list_store import NoteFilter
from sidecar.vault.names import check_folder, split_path
from sidecar.vault.note_text import compare_key, facts_of, tag_key
from sidecar.vault.notes import current_note, note_of_file, summary_of
from sidecar.vault.schemas import (
    Folder,
    FolderList,
    Note,
    NoteList,
    SkippedFile,
    SkippedList,
    TagCount,
    TagList,
    TranscriptOrigin,
    TrashedNote,
    TrashList,
    VaultStatus,
)
from sidecar.vault.session import VaultSession
from sidecar.vault.walking import folders
from sidecar.vault.writer import ForgetNote, NoteChange, NoteWriter

__all__ = [
    "ForgetNote",
    "IndexStep",
    "IndexedNote",
    "NoteFilter",
    "NoteIndexer",
    "VaultService",
    "check_folder",
    "compare_key",
    "tag_key",
]

log = get_logger(__name__)

VAULT_SETTING: Final = "vault.path"


class VaultService:
    """Opens a vault and works on its notes. One writer at a time, whoever asks."""

    def __init__(self, database: Database, indexer: NoteIndexer) -> None:
        self._database = database
        self._indexer = indexer
        self._session: VaultSession | None = None
        self._writer = NoteWriter(database)
        self._scan_listeners: list[Callable[[], None]] = []
        self._opening = asyncio.Lock()
        self._background = False

    # -- the vault -----------------------------------------------------------------------------

    @property
    def vault_id(self) -> str | None:
        """The opaque id of the open vault, None if none is open."""
        return self._session.vault_id if self._session else None

    @property
    def root(self) -> Path | None:
        """Where the open vault lies; for the host alone."""
        return self._session.files.root if self._session else None

    @property
    def scanning(self) -> bool:
        """Whether notes are still being taken in from disk."""
        return self._session is not None and self._session.scanning

    def require_vault_id(self) -> str:
        """Return the open vault's id; raises ``VAULT_NOT_OPEN``."""
        return self._open_session().vault_id

    def _open_session(self) -> VaultSession:
        if self._session is None:
            raise ProjectError("VAULT_NOT_OPEN")
        return self._session

    def on_trash(self, forget: ForgetNote) -> None:
        """Have *forget* called in the transaction of every deletion."""
        self._writer.forgetters.append(forget)

    def on_scanned(self, callback: Callable[[], None]) -> None:
        """Have *callback* called each time the whole vault has been compared with the disk."""
        self._scan_listeners.append(callback)

    async def start(self) -> None:
        """Begin to look through the open vault and to follow it, and every one opened from now on."""
        self._background = True
        if self._session is not None:
            self._session.start()

    async def restore(self, chosen: Path | None = None) -> None:
        """Open *chosen*, or the vault that was open last; a folder that is gone opens nothing.

        Cheap enough for the start: the notes are looked at after :meth:`start` alone.
        """
        path = chosen
        if path is None:
            stored = await self._database.read(lambda conn: get_setting(conn, VAULT_SETTING))
            path = Path(stored) if stored else None
        if path is None:
            return
        try:
            await self.open(path)
        except ProjectError as error:
            log.warning("vault.not_restored", extra={"code": error.code})

    async def open(self, path: Path, /) -> None:
        """Open the folder at *path*; raises ``VAULT_PATH_INVALID`` and leaves the old one open.

        Returns before the notes are taken in: that goes on in the background.
        """
        async with self._opening:
            root = await asyncio.to_thread(_usable_folder, path)
            if self._session is not None and self._session.files.root == root:
                return

            vault_id = await self._chosen(str(root))
            former, self._session = self._session, None
            if former is not None:
                await former.close()
            session = VaultSession(vault_id, root, self._database, self._indexer)
            session.scanned_at = self._scanned
            if self._background:
                session.start()
            self._session = session

    async def _chosen(self, root: str) -> str:
        """Remember the vault that is open and return its id; nothing is written if it is known."""

        def known(conn: Readable) -> str | None:
            if get_setting(conn, VAULT_SETTING) != root:
                return None
            return store.known_vault_id(conn, root)

        vault_id = await self._database.read(known)
        if vault_id is not None:
            return vault_id

        def write(tx: Transaction) -> str:
            put_setting(tx, VAULT_SETTING, root)
            return store.vault_id_of(tx, root, new_id("vault"), utc_now())

        return await self._database.write(write)

    def _scanned(self) -> None:
        for callback in self._scan_listeners:
            callback()

    async def close(self) -> None:
        """Finish the write that is under way and stop following the vault."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def scanned(self) -> None:
        """Wait until the open vault has been looked through once."""
        await self._open_session().scanned_once.wait()

    async def status(self) -> VaultStatus:
        """Return how far the vault has been looked through."""
        session = self._session
        if session is None:
            return VaultStatus(
                state="closed", scanned=0, total=None, note_count=0, skipped_count=0, watching="off"
            )
        notes, skipped = await self._database.read(
            lambda conn: (
                list_store.count_present(conn, session.vault_id),
                len(list_store.skipped_paths(conn, session.vault_id)),
            )
        )
        progress = session.reconciler.progress
        state = (
            "unavailable" if not session.available else "scanning" if session.scanning else "ready"
        )
        return VaultStatus(
            state=state,
            scanned=progress.scanned,
            total=progress.total,
            note_count=notes,
            skipped_count=skipped,
            watching=session.watching,
        )

    # -- reading -------------------------------------------------------------------------------

    async def get_note(self, note_id: str) -> Note:
        """Return a note as its file is now; raises ``RESOURCE_NOT_FOUND``."""
        session = self._open_session()
        current = await current_note(session, self._database, note_id)
        row, file = current.row, current.file
        facts = await asyncio.to_thread(facts_of, file.content)
        known = (row.size, row.mtime_ns, row.content_hash)
        if known != (file.stamp.size, file.stamp.mtime_ns, facts.content_hash):
            session.changed({row.path})
            if facts.content_hash != row.content_hash:
                changed_at = max(row.updated_at, file_time(file.stamp.mtime_ns))
                current = replace(current, row=replace(row, updated_at=changed_at))
        return note_of_file(current, facts)

    async def has_note(self, note_id: str) -> bool:
        """Whether the open vault has a note of this id; raises ``VAULT_NOT_OPEN``."""
        vault_id = self.require_vault_id()
        row = await self._database.read(lambda conn: store.get(conn, vault_id, note_id))
        return row is not None and row.state == "present"

    async def note_ids(self) -> set[str]:
        """Return the ids of all notes of the open vault."""
        vault_id = self.require_vault_id()
        return await self._database.read(lambda conn: list_store.present_ids(conn, vault_id))

    async def check_usable(self) -> None:
        """Raise ``VAULT_NOT_OPEN``, or ``VAULT_UNAVAILABLE`` if its folder can't be reached."""
        session = self._open_session()
        if not await asyncio.to_thread(session.files.root.is_dir):
            raise ProjectError("VAULT_UNAVAILABLE")

    async def list_notes(self, wanted: NoteFilter, page: PageQuery) -> NoteList:
        """Return a page of the notes, without their texts."""
        vault_id = self.require_vault_id()
        if wanted.folder is not None:
            wanted = replace(wanted, folder=check_folder(wanted.folder))
        found, total = await self._database.read(
            lambda conn: list_store.list_notes(conn, vault_id, wanted, page)
        )
        return NoteList(items=[summary_of(note) for note in found], page=page_of(total, page))

    async def folders(self) -> FolderList:
        """Return all folders of the vault with the number of notes in and below each."""
        session = self._open_session()
        paths = await asyncio.to_thread(folders, session.files.root)
        direct = await self._database.read(
            lambda conn: list_store.counts_by_folder(conn, session.vault_id)
        )
        totals: dict[str, int] = {}
        for key, count in direct.items():
            parts = key.split("/")
            for depth in range(1, len(parts) + 1):
                above = "/".join(parts[:depth])
                totals[above] = totals.get(above, 0) + count
        return FolderList(
            items=[
                Folder(
                    path=path,
                    name=split_path(path)[1],
                    note_count=totals.get(compare_key(path), 0),
                )
                for path in paths
            ]
        )

    async def tags(self) -> TagList:
        """Return all tags with the number of notes that have each."""
        vault_id = self.require_vault_id()
        found = await self._database.read(lambda conn: list_store.tag_counts(conn, vault_id))
        return TagList(items=[TagCount(tag=tag, note_count=count) for tag, count in found])

    async def skipped(self, page: PageQuery) -> SkippedList:
        """Return the files that can't be notes, with the reasons."""
        vault_id = self.require_vault_id()
        found, total = await self._database.read(
            lambda conn: list_store.list_skipped(conn, vault_id, page)
        )
        items = [
            SkippedFile(file_path=path, reason=reason, size=size) for path, reason, size in found
        ]
        return SkippedList(items=items, page=page_of(total, page))

    # -- writing -------------------------------------------------------------------------------

    async def create_note(
        self,
        title: str,
        content: str,
        folder: str = "",
        tags: Sequence[str] = (),
        *,
        transcript: TranscriptOrigin | None = None,
    ) -> Note:
        """Write a new note and return it, searchable; a taken file name gets a number.

        *transcript* is kept beside the note, so that its blocks know their place in the recording.
        """
        session = self._open_session()
        return await session.lock.run(
            lambda: self._writer.create(session, title, content, folder, tags, transcript)
        )

    async def update_note(
        self,
        note_id: str,
        *,
        title: str | None = None,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        expected_content_hash: str | None = None,
        transcript: TranscriptOrigin | None = None,
    ) -> Note:
        """Change what is given of a note and return it, searchable.

        Raises ``RESOURCE_NOT_FOUND``, ``NOTE_CONTENT_CONFLICT`` or ``PAYLOAD_TOO_LARGE``.
        """
        session = self._open_session()
        change = NoteChange(title, content, tags, transcript)
        return await session.lock.run(
            lambda: self._writer.update(session, note_id, change, expected_content_hash)
        )

    async def move_note(
        self, note_id: str, folder: str, *, expected_content_hash: str | None = None
    ) -> Note:
        """Move a note's file to *folder*, which is made if it is missing, and return the note."""
        session = self._open_session()
        return await session.lock.run(
            lambda: self._writer.move(session, note_id, folder, expected_content_hash)
        )

    async def delete_note(self, note_id: str, *, expected_content_hash: str | None = None) -> None:
        """Move a note's file into the vault's trash, its bytes unchanged."""
        session = self._open_session()
        await session.lock.run(lambda: self._writer.trash(session, note_id, expected_content_hash))

    async def restore_note(self, note_id: str) -> Note:
        """Bring a note back out of the trash, to where it lay; a taken name gets a number."""
        session = self._open_session()
        return await session.lock.run(lambda: self._writer.restore(session, note_id))

    async def trash(self, page: PageQuery) -> TrashList:
        """Return the notes in the trash."""
        vault_id = self.require_vault_id()
        rows, total = await self._database.read(
            lambda conn: list_store.list_trashed(conn, vault_id, page)
        )
        items = [
            TrashedNote(
                note_id=row.note_id, title=row.title, folder=row.folder, deleted_at=row.updated_at
            )
            for row in rows
        ]
        return TrashList(items=items, page=page_of(total, page))

    async def index_again(self, report: Callable[[int, int], Awaitable[None]]) -> None:
        """Prepare every note for the index anew; *report* is told (done, all) after each batch."""
        session = self._open_session()
        await session.scanned_once.wait()
        await session.reconciler.index_again(report)


def _usable_folder(path: Path) -> Path:
    """Return the folder at *path*, links resolved; raises ``VAULT_PATH_INVALID``."""
    try:
        root = path.resolve(strict=True)
        if not path.is_absolute() or not root.is_dir():
            raise ProjectError("VAULT_PATH_INVALID")
        with os.scandir(root):
            return root
    except (OSError, ValueError, RuntimeError):
        raise ProjectError("VAULT_PATH_INVALID") from None
