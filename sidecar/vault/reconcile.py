"""Brings what is known of the vault in line with what lies on disk.

Which note a file is, :mod:`sidecar.vault.identity` says. All of it happens in small batches under the
vault's write lock, so that requests are answered in between, and each batch leaves files and index in
step.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.logging import get_logger
from sidecar.vault import list_store, store
from sidecar.vault.files import NoteFile, SkippedError, VaultFiles
from sidecar.vault.identity import ReadFile, owners_of
from sidecar.vault.intake import Intake, PreparedNote
from sidecar.vault.note_text import TextFacts, facts_of
from sidecar.vault.schemas import TranscriptOrigin
from sidecar.vault.store import NoteRow
from sidecar.vault.walking import Walked, walk
from sidecar.vault.write_lock import WriteLock

log = get_logger(__name__)

BATCH_FILES: Final = 200
BATCH_BYTES: Final = 1024 * 1024

Took = Callable[[int], Awaitable[None]]
"""Told how many files have been taken in since it was told last."""


class ScanProgress:
    """How far the taking in of files has come since the vault was opened; it never falls."""

    def __init__(self) -> None:
        self.scanned = 0
        self._waiting = 0
        self._walked = False
        self._scans = 0

    @property
    def total(self) -> int | None:
        """Files that were taken in or wait for it; None until the vault was walked through once."""
        return self.scanned + self._waiting if self._walked else None

    @property
    def running(self) -> bool:
        """Whether what a walk has found is being taken in."""
        return self._scans > 0

    @contextlib.contextmanager
    def expecting(self, count: int, *, walked: bool = False) -> Iterator[Took]:
        """Tell that *count* files wait; yields what is to be told how many were taken in."""
        left = count
        self._waiting += count
        self._walked = self._walked or walked
        self._scans += walked

        async def took(number: int) -> None:
            nonlocal left
            left -= number
            self._waiting -= number
            self.scanned += number

        try:
            yield took
        finally:
            self._scans -= walked
            self._waiting -= left


@dataclass(slots=True)
class _Read:
    """Files of one batch as they were found."""

    files: list[ReadFile] = field(default_factory=list)
    skipped: dict[str, tuple[str, int]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _How:
    """How files are taken in: half-written ones as they are, unchanged ones again."""

    settled: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files that are ready to be stored, and what that was worked out from."""

    paths: Sequence[str]
    how: _How
    rows: dict[str, NoteRow]
    read: _Read
    owners: dict[str, NoteRow]
    prepared: list[PreparedNote]


class Reconciler:
    """Takes in changed files of one vault."""

    def __init__(
        self, files: VaultFiles, intake: Intake, database: Database, lock: WriteLock
    ) -> None:
        self._files = files
        self._intake = intake
        self._database = database
        self._lock = lock
        self.progress = ScanProgress()
        self.walk_seconds = 0.0
        self.unsettled: set[str] = set()
        """Paths of notes whose file looks half-written; to be looked at again."""

    # -- the whole vault -----------------------------------------------------------------------

    async def scan(self) -> None:
        """Compare the whole vault with what is known and take in every difference."""
        started = time.monotonic()
        walked = await asyncio.to_thread(walk, self._files.root)
        self.walk_seconds = time.monotonic() - started
        known = await self._database.read(
            lambda conn: list_store.stamps(conn, self._intake.vault_id)
        )
        await self._remember_skipped(walked)
        vanished = [path for path in known if path not in walked.notes]
        changed = [
            (path, stamp.size)
            for path, stamp in walked.notes.items()
            if path not in known or known[path][:2] != (stamp.size, stamp.mtime_ns)
        ]
        # What was skipped for its content is read again only after a change.
        changed = await self._without_known_skips(changed, known)
        with self.progress.expecting(len(vanished) + len(changed), walked=True) as took:
            # What is new comes first: a file that was moved is known by its text, and its note
            # never goes away in between.
            await self._take_in(_batches(changed), _How(), took)
            gone = [(path, 0) for path in vanished]
            await self._take_in(_batches(gone), _How(settled=True), took)

    async def _remember_skipped(self, walked: Walked) -> None:
        vault_id = self._intake.vault_id
        known = await self._database.read(lambda conn: list_store.skipped_paths(conn, vault_id))
        content_reasons = ("binary", "unreadable")
        news = {
            path: (reason, size)
            for path, (reason, size) in walked.skipped.items()
            if known.get(path) != reason
        }
        over = [
            path
            for path, reason in known.items()
            if path not in walked.skipped
            and not (reason in content_reasons and path in walked.notes)
        ]
        if not news and not over:
            return

        def write(tx: Transaction) -> None:
            for path, (reason, size) in news.items():
                list_store.put_skipped(tx, vault_id, path, reason, size)
            list_store.clear_skipped(tx, vault_id, over)

        await self._database.write(write)

    async def _without_known_skips(
        self, changed: list[tuple[str, int]], known: dict[str, tuple[int, int, int]]
    ) -> list[tuple[str, int]]:
        vault_id = self._intake.vault_id
        sizes = await self._database.read(lambda conn: list_store.skipped_sizes(conn, vault_id))
        return [(path, size) for path, size in changed if path in known or sizes.get(path) != size]

    # -- some paths ----------------------------------------------------------------------------

    async def take_in(self, paths: Iterable[str], *, settled: bool = False) -> None:
        """Look at the files at *paths* and take in what is there now.

        With *settled* a file that looks half-written is taken as it is.
        """
        sized = await asyncio.to_thread(
            lambda: [
                (path, stamp.size if (stamp := self._files.stamp(path)) else 0)
                for path in sorted(set(paths))
            ]
        )
        # What is gone comes last: a file that was moved is known by its text before.
        sized.sort(key=lambda item: item[1] == 0)
        with self.progress.expecting(len(sized)) as took:
            await self._take_in(_batches(sized), _How(settled=settled), took)

    async def index_again(self, report: Callable[[int, int], Awaitable[None]]) -> None:
        """Take in every note whether it has changed or not."""
        vault_id = self._intake.vault_id
        known = await self._database.read(lambda conn: list_store.stamps(conn, vault_id))
        paths = [(path, size) for path, (size, _, _) in known.items()]
        done = 0

        async def took(number: int) -> None:
            nonlocal done
            done += number
            await report(done, len(paths))

        await self._take_in(_batches(paths), _How(again=True), took)

    async def _take_in(self, batches: Iterable[Sequence[str]], how: _How, took: Took) -> None:
        """Take in files batch by batch: while one is stored, the next is read and prepared."""
        storing: asyncio.Task[None] | None = None
        being_stored = 0
        try:
            for paths in batches:
                batch = await self._prepare(paths, how)
                if storing is not None:
                    await asyncio.shield(storing)
                    await took(being_stored)
                storing = asyncio.create_task(self._store_alone(batch))
                being_stored = len(paths)
            if storing is not None:
                await asyncio.shield(storing)
                await took(being_stored)
        finally:
            # Nobody waits for it after a cancellation; the write lock sees it through.
            if storing is not None and not storing.done():
                storing.cancel()

    async def _prepare(self, paths: Sequence[str], how: _How) -> _Batch:
        vault_id = self._intake.vault_id
        rows = await self._database.read(lambda conn: store.at_paths(conn, vault_id, paths))
        read = await asyncio.to_thread(self._read, paths, rows, again=how.again)
        if not how.settled:
            self._set_unsettled_aside(read, rows)
        owners: dict[str, NoteRow] = {}
        prepared: list[PreparedNote] = []
        if read.files:
            owners, origins = await self._database.read(
                lambda conn: self._owners(conn, read.files, rows)
            )
            prepared = await asyncio.to_thread(self._prepare_files, read.files, owners, origins)
        return _Batch(paths, how, rows, read, owners, prepared)

    def _prepare_files(
        self,
        files: Sequence[ReadFile],
        owners: dict[str, NoteRow],
        origins: dict[str, TranscriptOrigin],
    ) -> list[PreparedNote]:
        return [
            self._intake.prepare(
                file,
                owners.get(file.path),
                facts=facts,
                former_transcript=origins.get(file.path),
            )
            for file, facts in files
        ]

    async def _store_alone(self, batch: _Batch) -> None:
        await self._lock.run(lambda: self._store(batch))

    async def _store(self, batch: _Batch) -> None:
        """Store a batch; runs under the write lock."""
        if not await self._still_true(batch):
            batch = await self._prepare(batch.paths, batch.how)
        claimed = {row.note_id for row in batch.owners.values()}
        rows = {path: row for path, row in batch.rows.items() if row.note_id not in claimed}
        await self._forget_gone(batch.read, rows)
        if batch.prepared:
            await self._intake.store(batch.prepared)

    async def _still_true(self, batch: _Batch) -> bool:
        """Whether neither files nor rows have changed since the batch was prepared."""
        vault_id = self._intake.vault_id

        def same_rows(conn: Readable) -> bool:
            return store.at_paths(conn, vault_id, batch.paths) == batch.rows and all(
                store.get(conn, vault_id, row.note_id) == row for row in batch.owners.values()
            )

        def same_files() -> bool:
            return all(
                self._files.stamp(file.path) == file.stamp for file, _ in batch.read.files
            ) and all(self._files.stamp(path) is None for path in batch.read.gone)

        return await self._database.read(same_rows) and await asyncio.to_thread(same_files)

    def _read(self, paths: Sequence[str], rows: dict[str, NoteRow], *, again: bool) -> _Read:
        read = _Read()
        for path in paths:
            try:
                file = self._files.read(path)
            except FileNotFoundError:
                read.gone.append(path)
            except SkippedError as skipped:
                stamp = self._files.stamp(path)
                read.skipped[path] = (skipped.reason, stamp.size if stamp else 0)
            else:
                facts = facts_of(file.content)
                row = rows.get(path)
                if again or row is None or not _is_taken_in(row, file, facts):
                    read.files.append((file, facts))
        return read

    def _set_unsettled_aside(self, read: _Read, rows: dict[str, NoteRow]) -> None:
        """Leave notes alone that another program seems to be writing at this moment."""
        for file, facts in list(read.files):
            row = rows.get(file.path)
            if row is not None and row.size > 0 and file.stamp.size == 0:
                read.files.remove((file, facts))
                self.unsettled.add(file.path)
        for path in list(read.skipped):
            if path in rows and read.skipped[path][0] in ("binary", "unreadable"):
                del read.skipped[path]
                self.unsettled.add(path)

    def _owners(
        self, conn: Readable, found: Sequence[ReadFile], rows: dict[str, NoteRow]
    ) -> tuple[dict[str, NoteRow], dict[str, TranscriptOrigin]]:
        """Return which note each file is, and the recordings that those were made from."""
        owners = owners_of(conn, self._intake.vault_id, self._files, found, rows)
        origins = {path: store.transcript_of(conn, row.note_no) for path, row in owners.items()}
        return owners, {path: origin for path, origin in origins.items() if origin is not None}

    async def _forget_gone(self, read: _Read, rows: dict[str, NoteRow]) -> None:
        gone = [rows[path] for path in (*read.gone, *read.skipped) if path in rows]
        if not gone and not read.skipped and not read.gone and not read.files:
            return
        vault_id = self._intake.vault_id
        over = [*read.gone, *(file.path for file, _ in read.files)]

        def write(tx: Transaction) -> None:
            for row in gone:
                self._intake.forget(tx, row, "missing", None)
            list_store.clear_skipped(tx, vault_id, over)
            for path, (reason, size) in read.skipped.items():
                list_store.put_skipped(tx, vault_id, path, reason, size)

        if gone or read.skipped or await self._any_skipped(over):
            await self._database.write(write)

    async def _any_skipped(self, paths: Sequence[str]) -> bool:
        known = await self._database.read(
            lambda conn: list_store.skipped_paths(conn, self._intake.vault_id)
        )
        return any(path in known for path in paths)


def _is_taken_in(row: NoteRow, file: NoteFile, facts: TextFacts) -> bool:
    known = (row.size, row.mtime_ns, row.content_hash)
    return known == (file.stamp.size, file.stamp.mtime_ns, facts.content_hash)


def _batches(paths: Sequence[tuple[str, int]]) -> Iterable[list[str]]:
    batch: list[str] = []
    size = 0
    for path, length in paths:
        if batch and (len(batch) >= BATCH_FILES or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch
