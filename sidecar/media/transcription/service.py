"""Transcription jobs: created, run, shown and cancelled."""

import json
import time
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.catalogue import localise
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.local_models.service import SpeechModel
from sidecar.media import store
from sidecar.media.attachments.service import TRANSCRIPTION, AttachmentService, CurrentVault
from sidecar.media.input_errors import invalid
from sidecar.media.schemas import (
    TranscriptionJob,
    TranscriptionJobListResponse,
    TranscriptionQuery,
    TranscriptionRequest,
    TranscriptionSummary,
)
from sidecar.media.transcription.attempt_notes import AttemptNotes
from sidecar.media.transcription.languages import LANGUAGES
from sidecar.media.transcription.profiles import DEFAULT_PROFILE
from sidecar.media.transcription.recognition import Recogniser, SpeechRequest, Transcribed
from sidecar.media.transcription.segments import transcript_text
from sidecar.media.transcripts.revisions import named_segments
from sidecar.media.whisper.client import FellBack, Position, Started

MAX_QUEUED: Final = 100
METADATA_BYTES: Final = 16 * 1024
PROGRESS_SECONDS: Final = 0.25


class TranscriptionService:
    """Turns recordings of the open vault into transcripts."""

    def __init__(
        self,
        database: Database,
        jobs: JobEngine,
        attachments: AttachmentService,
        vault: CurrentVault,
        recogniser: Recogniser,
        notes: AttemptNotes,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._attachments = attachments
        self._vault = vault
        self._recogniser = recogniser
        self._notes = notes
        jobs.register(
            JobKind(
                TRANSCRIPTION,
                "transcription",
                self._run,
                failure_code="TRANSCRIPTION_FAILED",
                cancelled_code="TRANSCRIPTION_CANCELLED",
                interrupted_code="TRANSCRIPTION_FAILED",
                queue_full_code="TRANSCRIPTION_QUEUE_FULL",
                max_queued=MAX_QUEUED,
                concurrency=recogniser.profiles.most_parallel_jobs,
                on_end=self._notes.write,
            )
        )

    # -- creating and reading ------------------------------------------------------------------

    async def create(self, request: TranscriptionRequest) -> TranscriptionJob:
        """Create a job for a recording and return it, queued."""
        vault_id = self._vault.require_vault_id()
        attachment = await self._attachments.get(request.attachment_id)
        if attachment.kind not in ("audio", "video"):
            raise ProjectError("UNSUPPORTED_AUDIO_FORMAT")
        self._recogniser.profiles.get(request.profile_id)
        if request.language is not None and request.language not in LANGUAGES:
            raise invalid("Not the code of a language that can be recognised.", "body", "language")
        if len(json.dumps(request.metadata, ensure_ascii=False).encode()) > METADATA_BYTES:
            raise invalid("More than 16 KiB of JSON.", "body", "metadata")

        def insert(tx: Transaction) -> Job:
            if store.get_attachment(tx, vault_id, request.attachment_id) is None:
                raise ProjectError("ATTACHMENT_NOT_FOUND")
            kept = request.model_dump() | {"vault_id": vault_id}
            job = self._jobs.create(tx, TRANSCRIPTION, kept, facet=vault_id)
            store.insert_transcription(tx, job.job_id, request.attachment_id)
            return job

        job = await self._database.write(insert)
        return TranscriptionJob(**_summary(job, None), segments=[], text=None)

    async def list(self, query: TranscriptionQuery) -> TranscriptionJobListResponse:
        """Return a page of the open vault's jobs, newest first."""
        vault_id = self._vault.require_vault_id()
        jobs, total = await self._jobs.list(
            TRANSCRIPTION, query, status=query.status, facet=vault_id
        )
        ids = [job.job_id for job in jobs]
        revisions = await self._database.read(lambda conn: store.current_revisions(conn, ids))
        return TranscriptionJobListResponse(
            items=[
                TranscriptionSummary(**_summary(job, revisions.get(job.job_id))) for job in jobs
            ],
            page=page_of(total, query),
        )

    async def get(self, job_id: str) -> TranscriptionJob:
        """Return a job with the current revision of its transcript, or raise ``RESOURCE_NOT_FOUND``."""
        job = await self.job(job_id)
        revision = await self._database.read(lambda conn: store.get_revision(conn, job_id))
        if revision is None:
            return TranscriptionJob(**_summary(job, None), segments=[], text=None)
        segments = named_segments(revision)
        return TranscriptionJob.model_validate(
            _summary(job, revision.revision)
            | {"segments": segments, "text": transcript_text(segments)}
        )

    async def job(self, job_id: str) -> Job:
        """Return the job itself; a job of another vault isn't found."""
        vault_id = self._vault.require_vault_id()
        job = await self._jobs.get(TRANSCRIPTION, job_id)
        if job.request["vault_id"] != vault_id:
            raise ProjectError("RESOURCE_NOT_FOUND")
        return job

    async def completed_job(self, job_id: str) -> Job:
        """Return a job that has a transcript, or raise ``TRANSCRIPT_NOT_READY``."""
        job = await self.job(job_id)
        if job.status != "completed":
            raise ProjectError("TRANSCRIPT_NOT_READY", details={"status": job.status})
        return job

    async def cancel(self, job_id: str) -> None:
        """Ask for the end of a job; its status and its terminal event tell when that has happened."""
        await self.job(job_id)
        await self._jobs.cancel(TRANSCRIPTION, job_id)

    async def check_usable(self) -> None:
        """Raise the code that a job of the default profile would fail with for want of a model."""
        await self._recogniser.model(DEFAULT_PROFILE)

    async def models_in_use(self) -> set[Path]:
        """Return the folders of the models that jobs run with or wait for."""
        used = self._notes.folders()
        _, queued = await self._jobs.list(TRANSCRIPTION, PageQuery(limit=1), status="queued")
        _, running = await self._jobs.list(TRANSCRIPTION, PageQuery(limit=1), status="running")
        if queued or running > len(used):
            # A job that hasn't begun takes the model that its profile names by then.
            used |= await self._recogniser.folders()
        return used | await self._diarization_in_use()

    async def _diarization_in_use(self) -> set[Path]:
        diarizer = self._recogniser.diarizer
        if diarizer is None:
            return set()
        for status in ("queued", "running"):
            jobs, _ = await self._jobs.list(TRANSCRIPTION, PageQuery(limit=200), status=status)
            if any(job.request["diarization"] for job in jobs):
                return diarizer.folders_at_work() | await diarizer.default_folder()
        return diarizer.folders_at_work()

    # -- running -------------------------------------------------------------------------------

    async def _run(self, ctx: JobContext) -> JobOutcome:
        listener = _JobListener(ctx, self._notes)
        transcribed = await self._recogniser.recognise(
            SpeechRequest.of_job(ctx.job.request), listener, _SpeakerListener(ctx)
        )
        return _outcome(ctx.job, transcribed)


class _JobListener:
    """Tells a job's followers how it goes on: positions a few times a second at the most."""

    def __init__(self, ctx: JobContext, notes: AttemptNotes) -> None:
        self._ctx = ctx
        self._notes = notes
        self._job_id = ctx.job.job_id
        self._duration = 0.0
        self._told_at = 0.0
        self._begun = False

    async def sent(self) -> None:
        self._notes.left_to_provider(self._job_id)

    async def fell_back(self, reason: str) -> None:
        self._notes.fell_back(self._job_id, reason)

    async def loading(self, model: SpeechModel, device: str) -> None:
        self._notes.chosen(self._job_id, model.path, device)
        await self._ctx.emit("ModelLoading")
        await self._ctx.progress("starting_over" if self._ctx.job.starts > 1 else "loading_model")

    async def started(self, step: Started) -> None:
        self._notes.started(self._job_id, step.device, step.load_ms)
        if not self._begun:
            await self._ctx.emit("TranscriptionStarted", {"duration_seconds": step.duration})
        self._begun = True
        self._duration = round(step.duration, 3)
        await self._tell(0.0)

    async def changed_device(self, step: FellBack) -> None:
        self._notes.fell_back(self._job_id, step.reason)

    async def reached(self, step: Position) -> None:
        if time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            await self._tell(min(round(step.seconds, 3), self._duration))

    async def recognised(self) -> None:
        self._notes.stopped(self._job_id)
        await self._tell(self._duration)

    async def _tell(self, seconds: float) -> None:
        self._told_at = time.monotonic()
        await self._ctx.progress("transcribing", seconds, self._duration)


class _SpeakerListener:
    """Tells a job's followers how the telling apart of speakers goes on."""

    def __init__(self, ctx: JobContext) -> None:
        self._ctx = ctx
        self._told_at = 0.0

    async def diarization_started(self, device: str) -> None:
        await self._ctx.emit("DiarizationStarted", {"device": device})
        await self._ctx.progress("diarizing", 0.0, 1.0)

    async def diarization_reached(self, fraction: float) -> None:
        if time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            await self._ctx.progress("diarizing", fraction, 1.0)

    async def diarization_completed(self, speakers: int) -> None:
        await self._ctx.progress("diarizing", 1.0, 1.0)
        await self._ctx.emit("DiarizationCompleted", {"speaker_count": speakers})


def _outcome(job: Job, transcribed: Transcribed) -> JobOutcome:
    result = {
        "language": transcribed.language,
        "duration_seconds": round(transcribed.duration, 3),
        "source": transcribed.source,
        "fallback_reason": transcribed.fallback_reason,
    }

    def store_transcript(tx: Transaction) -> None:
        store.insert_revision(tx, job.job_id, None, transcribed.segments, {})
        for warning in transcribed.warnings:
            job_store.add_warning(tx, job.job_id, warning)

    event = {
        "language": result["language"],
        "segment_count": len(transcribed.segments),
        "duration_seconds": result["duration_seconds"],
        "warnings": list(transcribed.warnings),
    }
    return JobOutcome(result, event, store_transcript)


def _summary(job: Job, revision: int | None) -> dict[str, Any]:
    request, result = job.request, job.result or {}
    error = job.error
    return {
        "job_id": job.job_id,
        "attachment_id": request["attachment_id"],
        "status": job.status,
        "progress": localise(job.progress),
        "language": request["language"] or result.get("language"),
        "diarization_enabled": request["diarization"],
        "word_timestamps": request["word_timestamps"],
        "profile_id": request["profile_id"],
        "metadata": request["metadata"],
        "warnings": job.warnings,
        "error": error.message() if error and job.status == "failed" else None,
        "error_code": job.error_code,
        "source": result.get("source"),
        "fallback_reason": result.get("fallback_reason")
        or job.error_details.get("fallback_reason"),
        "revision": revision,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "updated_at": job.updated_at,
        "completed_at": job.completed_at,
    }
