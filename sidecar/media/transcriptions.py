"""Transcription jobs: created, run, shown and cancelled."""

import json
import time
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from sidecar.kernel import job_store
from sidecar.kernel.catalogue import localise
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.job_store import Job
from sidecar.kernel.jobs import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.local_models.service import AttemptLog, LocalModels, SpeechModel
from sidecar.media import store
from sidecar.media.attachments import TRANSCRIPTION, AttachmentService, CurrentVault
from sidecar.media.attempt_notes import AttemptNotes
from sidecar.media.input_errors import invalid
from sidecar.media.languages import LANGUAGES
from sidecar.media.revisions import named_segments
from sidecar.media.schemas import (
    TranscriptionJob,
    TranscriptionJobListResponse,
    TranscriptionQuery,
    TranscriptionRequest,
    TranscriptionSummary,
)
from sidecar.media.segments import Segment, segments_of, transcript_text
from sidecar.media.whisper import Position, Recognised, Started, Whisper

MAX_QUEUED: Final = 100
METADATA_BYTES: Final = 16 * 1024
PROGRESS_SECONDS: Final = 0.25
# Profile → the model it uses; None is the best model that is installed.
PROFILES: Final[dict[str, str | None]] = {"default": None}


class TranscriptionService:
    """Turns recordings of the open vault into transcripts."""

    def __init__(
        self,
        database: Database,
        jobs: JobEngine,
        attachments: AttachmentService,
        vault: CurrentVault,
        models: LocalModels,
        whisper: Whisper,
        attempts: AttemptLog,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._attachments = attachments
        self._vault = vault
        self._models = models
        self._whisper = whisper
        self._notes = AttemptNotes(TRANSCRIPTION, attempts)
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
        if request.profile_id not in PROFILES:
            raise ProjectError("TRANSCRIPTION_PROFILE_NOT_FOUND")
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
        await self._model(PROFILES["default"])

    async def models_in_use(self) -> set[Path]:
        """Return the folders of the models that jobs run with or wait for."""
        used = self._notes.folders()
        _, queued = await self._jobs.list(TRANSCRIPTION, PageQuery(limit=1), status="queued")
        _, running = await self._jobs.list(TRANSCRIPTION, PageQuery(limit=1), status="running")
        if queued or running > len(used):
            # A job that hasn't begun takes the model that is the best by then.
            model = await self._models.speech_model(PROFILES["default"])
            used |= {model.path} if model else set()
        return used

    # -- running -------------------------------------------------------------------------------

    async def _run(self, ctx: JobContext) -> JobOutcome:
        request = ctx.job.request
        recording = await self._attachments.file_of(request["vault_id"], request["attachment_id"])
        model = await self._model(PROFILES[request["profile_id"]])
        self._notes.chosen(ctx.job.job_id, model.path)
        await ctx.emit("ModelLoading")
        await ctx.progress("loading_model")
        recognised: Recognised | None = None
        work = self._whisper.transcribe(
            recording,
            model.path,
            language=request["language"],
            word_timestamps=request["word_timestamps"],
        )
        progress = _Throttled(ctx)
        async with aclosing(work) as steps:
            async for step in steps:
                if isinstance(step, Recognised):
                    recognised = step
                    self._notes.stopped(ctx.job.job_id)
                    await progress.finish()
                elif isinstance(step, Started):
                    self._notes.started(ctx.job.job_id, step.device, step.load_ms)
                    await ctx.emit("TranscriptionStarted", {"duration_seconds": step.duration})
                    await progress.begin(step.duration)
                else:
                    await progress.reach(step)
        assert recognised is not None, "a worker's last message is its result"
        return _outcome(ctx.job, recognised)

    async def _model(self, name: str | None) -> SpeechModel:
        model = await self._models.speech_model(name)
        if model is None:
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")
        if model.damaged:
            raise ProjectError("TRANSCRIPTION_MODEL_UNAVAILABLE")
        return model


class _Throttled:
    """Tells a job's progress, a few times a second at the most."""

    def __init__(self, ctx: JobContext) -> None:
        self._ctx = ctx
        self._duration = 0.0
        self._told_at = 0.0

    async def begin(self, duration: float) -> None:
        self._duration = round(duration, 3)
        await self._tell(0.0)

    async def reach(self, position: Position) -> None:
        if time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            await self._tell(min(round(position.seconds, 3), self._duration))

    async def finish(self) -> None:
        await self._tell(self._duration)

    async def _tell(self, seconds: float) -> None:
        self._told_at = time.monotonic()
        await self._ctx.progress("transcribing", seconds, self._duration)


def _outcome(job: Job, recognised: Recognised) -> JobOutcome:
    segments = segments_of(recognised.segments, recognised.duration, recognised.language)
    warnings = list(_warnings(job, recognised, segments))
    result = {
        "language": recognised.language,
        "duration_seconds": round(recognised.duration, 3),
        "source": "local",
        "fallback_reason": None,
    }

    def store_transcript(tx: Transaction) -> None:
        store.insert_revision(tx, job.job_id, None, segments, {})
        for warning in warnings:
            job_store.add_warning(tx, job.job_id, warning)

    event = {
        "language": result["language"],
        "segment_count": len(segments),
        "duration_seconds": result["duration_seconds"],
        "warnings": warnings,
    }
    return JobOutcome(result, event, store_transcript)


def _warnings(job: Job, recognised: Recognised, segments: list[Segment]) -> Iterable[str]:
    if job.request["diarization"]:
        yield "DIARIZATION_UNAVAILABLE"
    if not segments:
        yield "NO_SPEECH_DETECTED"
    if recognised.truncated:
        yield "AUDIO_TRUNCATED"


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
        "fallback_reason": result.get("fallback_reason"),
        "revision": revision,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "updated_at": job.updated_at,
        "completed_at": job.completed_at,
    }
