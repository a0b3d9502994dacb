"""Paths of transcription jobs."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.sse import AfterSequence, LastEventId, resource_stream, stream_responses
from sidecar.kernel.jobs.schemas import OperationResponse
from sidecar.media.schemas import (
    TranscriptionJob,
    TranscriptionJobListResponse,
    TranscriptionQuery,
    TranscriptionRequest,
)
from sidecar.media.service import MediaService


def add_routes(router: APIRouter, service: MediaService) -> None:
    """Add the paths of transcription jobs."""
    _add_transcriptions(router, service)
    _add_events(router, service)


def _add_transcriptions(router: APIRouter, service: MediaService) -> None:
    @router.post(
        "/transcriptions",
        status_code=202,
        response_model=TranscriptionJob,
        summary="Transcribe a recording",
        description="Answers at once with a queued job; `…/events` tells how it goes on. Without an "
        "installed speech model the job fails with `LOCAL_MODEL_NOT_INSTALLED`.",
        responses=error_responses(
            "ATTACHMENT_NOT_FOUND",
            "UNSUPPORTED_AUDIO_FORMAT",
            "TRANSCRIPTION_PROFILE_NOT_FOUND",
            "TRANSCRIPTION_QUEUE_FULL",
            "VAULT_NOT_OPEN",
        ),
    )
    async def create_transcription(body: TranscriptionRequest) -> TranscriptionJob:
        return await service.transcriptions.create(body)

    @router.get(
        "/transcriptions",
        response_model=TranscriptionJobListResponse,
        summary="List transcription jobs",
        description="Jobs of the open vault, newest first, without their transcripts.",
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_transcriptions(
        query: Annotated[TranscriptionQuery, Query()],
    ) -> TranscriptionJobListResponse:
        return await service.transcriptions.list(query)

    @router.get(
        "/transcriptions/{job_id}",
        response_model=TranscriptionJob,
        summary="Get a transcription job",
        description="The job with the current revision of its transcript.",
        responses=error_responses("RESOURCE_NOT_FOUND", "VAULT_NOT_OPEN"),
    )
    async def get_transcription(job_id: str) -> TranscriptionJob:
        return await service.transcriptions.get(job_id)

    @router.post(
        "/transcriptions/{job_id}/cancel",
        status_code=202,
        response_model=OperationResponse,
        summary="Cancel a transcription",
        description="Records the request; the job's status and its terminal event tell when it has stopped.",
        responses=error_responses("RESOURCE_NOT_FOUND", "JOB_ALREADY_FINISHED", "VAULT_NOT_OPEN"),
    )
    async def cancel_transcription(job_id: str) -> OperationResponse:
        await service.transcriptions.cancel(job_id)
        return OperationResponse.accepted("cancel_requested")


def _add_events(router: APIRouter, service: MediaService) -> None:
    @router.get(
        "/transcriptions/{job_id}/events",
        response_class=Response,
        summary="Follow a transcription",
        description="Server-sent events: Queued, ModelLoading, DiarizationStarted, DiarizationCompleted, "
        "TranscriptionStarted, Progress, and one of Completed, Failed, Cancelled at the end. Resume with "
        "`Last-Event-ID` or `after_sequence`.",
        responses=stream_responses()
        | error_responses("RESOURCE_NOT_FOUND", "TRACE_CURSOR_INVALID", "VAULT_NOT_OPEN"),
    )
    async def stream_transcription_events(
        job_id: str,
        last_event_id: LastEventId = None,
        after_sequence: AfterSequence = None,
    ) -> Response:
        await service.transcriptions.job(job_id)
        return await resource_stream(
            service.events, job_id, last_event_id=last_event_id, after_sequence=after_sequence
        )
