"""Attachments: taken in, checked, kept, given out again, and cleaned up."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from sidecar.kernel.clock import utc_in, utc_now
from sidecar.kernel.database import Database, DatabaseClosedError, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paging import page_of
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import Worker, WorkerPool, WorkerSpec
from sidecar.media import store
from sidecar.media.attachments.file_names import suffix_of
from sidecar.media.attachments.multipart_upload import ReceivedFile, receive_file
from sidecar.media.attachments.types import (
    RECORDING_SUFFIXES,
    SUFFIXES,
    ContentType,
    document_or_image_type,
    recording_type,
)
from sidecar.media.input_errors import invalid
from sidecar.media.schemas import Attachment, AttachmentList, AttachmentQuery
from sidecar.media.store import StoredAttachment

log = get_logger(__name__)

CLEANUP_SECONDS: Final = 6 * 60 * 60.0
TRANSCRIPTION: Final = "transcription"
PROBE_WORKER: Final = WorkerSpec("probe", idle_seconds=30.0, silence_seconds=30.0)
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{16,100}")


class CurrentVault(Protocol):
    """What attachments need of the vault: which one is open."""

    def require_vault_id(self) -> str:
        """Return the id of the open vault, or raise ``VAULT_NOT_OPEN``."""
        ...


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """The largest upload in bytes, and how many days a file is kept that nothing refers to."""

    size: int
    retention_days: int


@dataclass(frozen=True, slots=True)
class AttachmentFile:
    """An attachment with the place of its file, for sending it."""

    attachment: StoredAttachment
    path: Path


@dataclass(frozen=True, slots=True)
class AttachmentUser:
    """Another part of the program that refers to attachments."""

    kind: str
    """What its references are called."""
    find: Callable[[Readable, str], list[str]]
    """Returns the ids of what refers to an attachment."""
    forget: Callable[[Transaction, str], None] = lambda _tx, _attachment_id: None
    """Removes what is kept of an attachment that is deleted."""


def _wire(stored: StoredAttachment) -> Attachment:
    return Attachment.model_validate(stored, from_attributes=True)


class AttachmentService:
    """Attachments of the open vault."""

    def __init__(
        self,
        database: Database,
        paths: DataPaths,
        vault: CurrentVault,
        workers: WorkerPool,
        limits: AttachmentLimits,
    ) -> None:
        self.size_limit = limits.size
        self._retention_seconds = limits.retention_days * 86_400
        self._database = database
        self._paths = paths
        self._vault = vault
        self._prober: Worker = workers.add(PROBE_WORKER)
        self._made_at = time.time()
        self._cleaner: asyncio.Task[None] | None = None
        self._users: list[AttachmentUser] = []

    def add_user(self, user: AttachmentUser) -> None:
        """Have *user* asked before an attachment goes, and told when it is gone."""
        self._users.append(user)

    # -- uploading -----------------------------------------------------------------------------

    async def upload(
        self, chunks: AsyncIterator[bytes], content_type: str, idempotency_key: str | None
    ) -> Attachment:
        """Take in the multipart body *chunks* and return the attachment.

        The same key with the same file name and content gives the attachment that it gave before. A
        refused upload doesn't use up its key.
        """
        vault_id = self._vault.require_vault_id()
        if idempotency_key is not None and not _KEY.fullmatch(idempotency_key):
            raise invalid("16 to 100 letters, digits, _ or -.", "header", "Idempotency-Key")
        async with receive_file(
            chunks, content_type, self._paths.temporary, self.size_limit
        ) as received:
            if idempotency_key is not None:
                earlier = await self._database.read(
                    lambda conn: _earlier_upload(conn, vault_id, idempotency_key, received)
                )
                if earlier is not None:
                    return _wire(earlier)
            found = await self._identify(received)
            return await self._keep(vault_id, received, found, idempotency_key)

    async def _identify(self, received: ReceivedFile) -> ContentType:
        suffix = suffix_of(received.file_name)
        if suffix not in SUFFIXES:
            raise ProjectError("UNSUPPORTED_ATTACHMENT_TYPE")
        if suffix in RECORDING_SUFFIXES:
            return await self._identify_recording(received.path)
        found = await asyncio.to_thread(document_or_image_type, received.path, suffix)
        if found is None:
            raise ProjectError("UNSUPPORTED_ATTACHMENT_TYPE")
        return found

    async def _identify_recording(self, path: Path) -> ContentType:
        probe = await self._asked_of_prober("probe", path)
        found = recording_type(probe["container"], has_pictures=probe["has_pictures"])
        if found is None:
            raise ProjectError("UNSUPPORTED_AUDIO_FORMAT")
        return found

    async def _asked_of_prober(self, method: str, path: Path) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        try:
            async with aclosing(self._prober.request(method, {"path": str(path)})) as messages:
                async for message in messages:
                    answer = message["data"]
        except ProjectError as error:
            if error.code in ("WORKER_CRASHED", "WORKER_TIMEOUT"):
                # A file that the decoder can't even look at without breaking is no recording.
                raise ProjectError("UNSUPPORTED_AUDIO_FORMAT") from None
            raise
        return answer

    async def _keep(
        self, vault_id: str, received: ReceivedFile, found: ContentType, key: str | None
    ) -> Attachment:
        attachment_id = new_id("attachment")
        attachment = StoredAttachment(
            attachment_id=attachment_id,
            vault_id=vault_id,
            file_name=received.file_name,
            stored_name=attachment_id + suffix_of(received.file_name),
            mime_type=found.mime_type,
            kind=found.kind,
            size=received.size,
            sha256=received.sha256,
            created_at=utc_now(),
        )
        path = self._path_of(attachment)

        def insert(tx: Transaction) -> StoredAttachment:
            if key is not None:
                # An equal upload may have come to its end while this one was looked at.
                earlier = _earlier_upload(tx, vault_id, key, received)
                if earlier is not None:
                    return earlier
                store.insert_upload_key(tx, key, attachment)
            store.insert_attachment(tx, attachment)
            return attachment

        await asyncio.to_thread(_move_durably, received.path, path)
        try:
            kept = await self._database.write(insert)
        except (ProjectError, DatabaseClosedError):
            await asyncio.to_thread(path.unlink, missing_ok=True)
            raise
        if kept is not attachment:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        return _wire(kept)

    # -- reading -------------------------------------------------------------------------------

    async def list(self, query: AttachmentQuery) -> AttachmentList:
        """Return a page of the open vault's attachments, newest first."""
        vault_id = self._vault.require_vault_id()
        found, total = await self._database.read(
            lambda conn: store.page_attachments(
                conn, vault_id, query.kind, query.limit, query.offset
            )
        )
        return AttachmentList(items=[_wire(item) for item in found], page=page_of(total, query))

    async def get(self, attachment_id: str) -> Attachment:
        """Return an attachment of the open vault, or raise ``ATTACHMENT_NOT_FOUND``."""
        return _wire(await self._stored(attachment_id))

    async def file(self, attachment_id: str) -> AttachmentFile:
        """Return where the content lies; ``ATTACHMENT_NOT_FOUND`` also if its file is gone."""
        stored = await self._stored(attachment_id)
        path = self._path_of(stored)
        if not await asyncio.to_thread(path.is_file):
            raise ProjectError("ATTACHMENT_NOT_FOUND")
        return AttachmentFile(stored, path)

    async def file_of(self, vault_id: str, attachment_id: str) -> AttachmentFile:
        """Return where the content of an attachment of any vault lies, or raise ``ATTACHMENT_NOT_FOUND``."""
        stored = await self._database.read(
            lambda conn: store.get_attachment(conn, vault_id, attachment_id)
        )
        if stored is None or not await asyncio.to_thread(self._path_of(stored).is_file):
            raise ProjectError("ATTACHMENT_NOT_FOUND")
        return AttachmentFile(stored, self._path_of(stored))

    async def duration(self, recording: Path) -> float:
        """Return the seconds of sound in a recording, or raise ``UNSUPPORTED_AUDIO_FORMAT``."""
        return float((await self._asked_of_prober("measure", recording))["duration"])

    async def _stored(self, attachment_id: str) -> StoredAttachment:
        vault_id = self._vault.require_vault_id()
        stored = await self._database.read(
            lambda conn: store.get_attachment(conn, vault_id, attachment_id)
        )
        if stored is None:
            raise ProjectError("ATTACHMENT_NOT_FOUND")
        return stored

    def _path_of(self, attachment: StoredAttachment) -> Path:
        return self._paths.attachments / attachment.stored_name

    # -- removing ------------------------------------------------------------------------------

    async def delete(self, attachment_id: str, *, force: bool) -> None:
        """Delete an attachment and its file.

        Raises ``ATTACHMENT_IN_USE`` if an unfinished job uses it, or, without *force*, if anything
        refers to it; ``details.references`` tells what.
        """
        vault_id = self._vault.require_vault_id()

        def change(tx: Transaction) -> StoredAttachment:
            stored = store.get_attachment(tx, vault_id, attachment_id)
            if stored is None:
                raise ProjectError("ATTACHMENT_NOT_FOUND")
            references, active = _references(tx, attachment_id)
            references += _used_by(self._users, tx, attachment_id)
            if active or (references and not force):
                raise ProjectError("ATTACHMENT_IN_USE", details={"references": references})
            self._delete_row(tx, attachment_id)
            return stored

        stored = await self._database.write(change)
        await asyncio.to_thread(self._remove_file, stored.stored_name)

    def _delete_row(self, tx: Transaction, attachment_id: str) -> None:
        store.delete_attachment(tx, attachment_id)
        for user in self._users:
            user.forget(tx, attachment_id)

    def _remove_file(self, stored_name: str) -> None:
        try:
            (self._paths.attachments / stored_name).unlink(missing_ok=True)
        except OSError as error:
            # A file that another program holds open (Windows) goes at the next start.
            log.warning("attachments.file_not_removed", extra={"reason": type(error).__name__})

    async def clean_up(self) -> int:
        """Remove attachments past their retention that nothing refers to; return how many."""

        def change(tx: Transaction) -> list[StoredAttachment]:
            old = [
                attachment
                for attachment in store.unreferenced_before(tx, utc_in(-self._retention_seconds))
                if not _used_by(self._users, tx, attachment.attachment_id)
            ]
            for attachment in old:
                self._delete_row(tx, attachment.attachment_id)
            return old

        removed = await self._database.write(change)
        for attachment in removed:
            await asyncio.to_thread(self._remove_file, attachment.stored_name)
        return len(removed)

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to tidy up in the background."""
        self._cleaner = asyncio.create_task(self._tidy(), name="attachments-tidy")

    async def close(self) -> None:
        """Stop tidying up."""
        if self._cleaner is not None:
            self._cleaner.cancel()
            await asyncio.gather(self._cleaner, return_exceptions=True)

    async def _tidy(self) -> None:
        try:
            known = await self._database.read(store.stored_names)
            await asyncio.to_thread(self._remove_leftovers, known)
            while True:
                await self.clean_up()
                await asyncio.sleep(CLEANUP_SECONDS)
        except DatabaseClosedError:
            return

    def _remove_leftovers(self, known: set[str]) -> None:
        """Remove what an earlier process left: unfinished uploads, and files that no row names.

        Files newer than this process belong to uploads that are under way.
        """
        kept = self._paths.attachments
        for path in (*self._paths.temporary.glob("upload-*"), *kept.iterdir()):
            try:
                if path.name not in known and path.stat().st_mtime < self._made_at:
                    path.unlink()
            except OSError as error:
                log.warning(
                    "attachments.leftover_not_removed", extra={"reason": type(error).__name__}
                )


def _earlier_upload(
    conn: Readable, vault_id: str, key: str, received: ReceivedFile
) -> StoredAttachment | None:
    """Return the attachment that *key* gave before, None for a new key.

    Raises ``IDEMPOTENCY_CONFLICT`` for another file, ``IDEMPOTENCY_EXPIRED`` if it is gone.
    """
    used = store.get_upload_key(conn, vault_id, key)
    if used is None:
        return None
    if (used.file_name, used.sha256) != (received.file_name, received.sha256):
        raise ProjectError("IDEMPOTENCY_CONFLICT")
    attachment = store.get_attachment(conn, vault_id, used.attachment_id)
    if attachment is None:
        raise ProjectError("IDEMPOTENCY_EXPIRED")
    return attachment


def _references(conn: Readable, attachment_id: str) -> tuple[list[dict[str, str]], bool]:
    """Return what refers to an attachment, and whether an unfinished job is among it."""
    job_ids = store.transcriptions_of(conn, attachment_id)
    jobs = [job for job_id in job_ids if (job := job_store.get(conn, TRANSCRIPTION, job_id))]
    references = [{"type": "transcription", "id": job.job_id} for job in jobs]
    references += [
        {"type": "note", "id": note_id} for note_id in store.exported_notes(conn, job_ids)
    ]
    return references, any(not job.is_terminal for job in jobs)


def _used_by(
    users: Iterable[AttachmentUser], conn: Readable, attachment_id: str
) -> list[dict[str, str]]:
    """Return what other parts of the program have that refers to an attachment."""
    return [
        {"type": user.kind, "id": found}
        for user in users
        for found in user.find(conn, attachment_id)
    ]


def _move_durably(source: Path, target: Path) -> None:
    source.replace(target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
