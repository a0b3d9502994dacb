"""Recordings and their transcripts: what other parts of the program and the router call."""

from typing import Protocol

from sidecar.kernel.database import Database
from sidecar.kernel.events import EventLog
from sidecar.kernel.jobs import JobEngine
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers import WorkerPool
from sidecar.local_models.service import AttemptLog, LocalModels
from sidecar.media.attachments import SIZE_LIMIT, AttachmentFile, AttachmentService, CurrentVault
from sidecar.media.notes import NoteWriter, TranscriptNotes, WrittenNote
from sidecar.media.revisions import RevisionService
from sidecar.media.transcriptions import TranscriptionService
from sidecar.media.whisper import Whisper

__all__ = ["SIZE_LIMIT", "AttachmentFile", "MediaService", "WrittenNote"]


class Vault(CurrentVault, NoteWriter, Protocol):
    """What media needs of the vault."""


class MediaService:
    """The services of the domain, wired together."""

    def __init__(
        self,
        database: Database,
        events: EventLog,
        jobs: JobEngine,
        workers: WorkerPool,
        paths: DataPaths,
        *,
        vault: Vault,
        models: LocalModels,
    ) -> None:
        self.events = events
        self.attachments = AttachmentService(database, paths, vault, workers)
        self.transcriptions = TranscriptionService(
            database,
            jobs,
            self.attachments,
            vault,
            models,
            Whisper(workers),
            AttemptLog(database),
        )
        self.revisions = RevisionService(database, self.transcriptions)
        self.notes = TranscriptNotes(database, self.revisions, self.attachments, vault)

    async def start(self) -> None:
        """Begin to tidy up what earlier runs left."""
        self.attachments.start()

    async def close(self) -> None:
        """Stop what runs in the background; jobs and workers are ended by their engines."""
        await self.attachments.close()
