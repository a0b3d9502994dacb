"""Recordings and their transcripts: what other parts of the program and the router call."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sidecar.kernel.database import Database
from sidecar.kernel.events import EventLog
from sidecar.kernel.jobs.engine import JobEngine
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import WorkerPool
from sidecar.local_models.service import AttemptLog, InstalledModels, LocalModels
from sidecar.media.attachments.service import (
    TRANSCRIPTION,
    AttachmentFile,
    AttachmentLimits,
    AttachmentService,
    AttachmentUser,
    CurrentVault,
)
from sidecar.media.remote import (
    RemoteRecording,
    RemoteSegment,
    RemoteTranscriber,
    RemoteTranscript,
)
from sidecar.media.speakers.diarization import Diarizer
from sidecar.media.speakers.matching import RemoteSpeakerMatcher, SpeakerMatching
from sidecar.media.speakers.voices import Voices
from sidecar.media.transcription.attachment_text import (
    AttachmentText,
    AttachmentTexts,
    TextProgress,
)
from sidecar.media.transcription.attempt_notes import AttemptNotes
from sidecar.media.transcription.note_terms import NoteNames, NoteTerms
from sidecar.media.transcription.profiles import SETTINGS_FILE, TranscriptionProfiles
from sidecar.media.transcription.recognition import Recogniser
from sidecar.media.transcription.service import TranscriptionService
from sidecar.media.transcripts.notes import NoteWriter, TranscriptNotes, WrittenNote
from sidecar.media.transcripts.revisions import RevisionService
from sidecar.media.transcripts.subtitles import TranscriptSubtitles
from sidecar.media.whisper.client import Whisper
from sidecar.runtime.service import RuntimeService
from sidecar.usage.service import UsageLedger

__all__ = [
    "SETTINGS_FILE",
    "AttachmentFile",
    "AttachmentText",
    "AttachmentUser",
    "LocalParts",
    "MediaService",
    "RemoteRecording",
    "RemoteSegment",
    "RemoteTranscriber",
    "RemoteTranscript",
    "TranscriptionProfiles",
    "WrittenNote",
]


class Vault(CurrentVault, NoteWriter, Protocol):
    """What media needs of the vault."""


@dataclass(frozen=True, slots=True)
class LocalParts:
    """What runs on this computer: speech models, models of every purpose, and torch's interpreter."""

    speech: LocalModels
    models: InstalledModels
    runtime: RuntimeService


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
        local: LocalParts,
        ledger: UsageLedger,
    ) -> None:
        self.events = events
        profiles = TranscriptionProfiles(paths.root)
        self.attachments = AttachmentService(
            database,
            paths,
            vault,
            workers,
            AttachmentLimits(profiles.attachment_limit, profiles.attachment_retention_days),
        )
        recogniser = self._recogniser = Recogniser(
            self.attachments,
            local.speech,
            Whisper(workers, profiles.most_parallel_jobs),
            profiles,
            ledger,
        )
        attempts = AttemptNotes(TRANSCRIPTION, AttemptLog(database))
        self.transcriptions = TranscriptionService(
            database, jobs, self.attachments, vault, recogniser, attempts
        )
        self._texts = AttachmentTexts(database, self.attachments, vault, recogniser, attempts)
        voices = Voices(workers)
        self.diarizer = recogniser.diarizer = Diarizer(
            database, workers, voices, local.models, local.runtime, paths.temporary
        )
        self.speaker_matching = SpeakerMatching(
            database, self.attachments, vault, voices, local.models, ledger
        )
        self.revisions = RevisionService(database, self.transcriptions)
        self.subtitles = TranscriptSubtitles(self.revisions, self.attachments)
        self.notes = TranscriptNotes(database, self.revisions, self.attachments, vault)

    def use_remote(self, remote: RemoteTranscriber) -> None:
        """Ask *remote* first from now on."""
        self._recogniser.remote = remote

    def use_remote_matcher(self, remote: RemoteSpeakerMatcher) -> None:
        """Ask *remote* first from now on where voices are compared."""
        self.speaker_matching.remote = remote

    def listen_for(self, notes: NoteNames) -> None:
        """Let the recogniser listen for the terms of these notes, where the profile lets it."""
        self._recogniser.terms = NoteTerms(notes)

    async def attachment_text(
        self, attachment_id: str, *, progress: TextProgress | None = None
    ) -> AttachmentText:
        """Return the words of a recording without a job; see :meth:`AttachmentTexts.text`."""
        return await self._texts.text(attachment_id, progress=progress)

    async def models_in_use(self) -> set[Path]:
        """Return the folders of the models that work right now or are waited for."""
        used = await self.transcriptions.models_in_use()
        return used | self.speaker_matching.folders_at_work()

    def matches_speakers_now(self) -> bool:
        """Whether voices are being compared by the local model."""
        return bool(self.speaker_matching.folders_at_work())

    async def start(self) -> None:
        """Begin to tidy up what earlier runs left."""
        self.attachments.start()

    async def close(self) -> None:
        """Stop what runs in the background; jobs and workers are ended by their engines."""
        await self.attachments.close()
