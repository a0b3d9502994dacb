"""Paths of attachments and transcriptions."""

from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect

from sidecar.kernel.errors import ProjectError, error_responses
from sidecar.kernel.hang_up import unless_hung_up
from sidecar.kernel.job_models import OperationResponse
from sidecar.kernel.paging import PageQuery
from sidecar.kernel.sse import resource_stream
from sidecar.media.byte_range import usable_range
from sidecar.media.input_errors import invalid
from sidecar.media.schemas import (
    Attachment,
    AttachmentList,
    AttachmentQuery,
    RevisionDetail,
    RevisionEdit,
    RevisionList,
    SpeakerMatch,
    SpeakerMatchRequest,
    SubtitleQuery,
    TranscriptionJob,
    TranscriptionJobListResponse,
    TranscriptionQuery,
    TranscriptionRequest,
    TranscriptNoteRequest,
)
from sidecar.media.service import AttachmentFile, MediaService
from sidecar.vault.schemas import Note

UPLOAD_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "The file, with its name; at most 26,214,400 bytes "
                            "unless the settings allow more.",
                        }
                    },
                }
            }
        },
    }
}
CONTENT_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The whole file.", "content": {"application/octet-stream": {}}},
    206: {
        "description": "The part that Range asked for.",
        "content": {"application/octet-stream": {}},
    },
    304: {"description": "The client's copy (If-None-Match) is still good."},
}
EVENT_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "The cursor is that of the terminal event: nothing will follow."},
}

SUBTITLE_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The subtitles, as a file.",
        "content": {
            "application/x-subrip": {"schema": {"type": "string"}},
            "text/vtt": {"schema": {"type": "string"}},
        },
    }
}
UPDATED_NOTE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": Note, "description": "The earlier note, up to date."}
}


def build_router(service: MediaService) -> APIRouter:
    """Return the routes of the domain."""
    router = APIRouter(prefix="/api/media", tags=["media"])
    _add_uploads(router, service)
    _add_attachments(router, service)
    _add_content(router, service)
    _add_transcriptions(router, service)
    _add_events(router, service)
    _add_notes(router, service)
    _add_revisions(router, service)
    _add_subtitles(router, service)
    _add_speaker_matches(router, service)
    return router


def _add_uploads(router: APIRouter, service: MediaService) -> None:
    @router.post(
        "/attachments",
        status_code=201,
        response_model=Attachment,
        summary="Upload a file",
        description="Recordings (wav, mp3, m4a, aac, flac, ogg, opus, webm, mp4), documents (docx, pptx, "
        "ppt) and images (png, jpg, jpeg, webp), by suffix and content. With an Idempotency-Key the same "
        "file sent again gives the same attachment.",
        responses=error_responses(
            "ATTACHMENT_EMPTY",
            "ATTACHMENT_TOO_LARGE",
            "DISK_SPACE_INSUFFICIENT",
            "UNSUPPORTED_ATTACHMENT_TYPE",
            "UNSUPPORTED_AUDIO_FORMAT",
            "IDEMPOTENCY_CONFLICT",
            "IDEMPOTENCY_EXPIRED",
            "VAULT_NOT_OPEN",
            "VALIDATION_ERROR",
        ),
        openapi_extra=UPLOAD_BODY,
    )
    async def upload_attachment(
        request: Request,
        idempotency_key: Annotated[
            str | None, Header(description="16 to 100 letters, digits, underscores or hyphens.")
        ] = None,
    ) -> Attachment:
        try:
            return await service.attachments.upload(
                request.stream(), request.headers.get("content-type", ""), idempotency_key
            )
        except ClientDisconnect:
            # Nobody is there to read the answer.
            raise invalid("The upload was broken off.", "body") from None
        except ProjectError:
            await _read_to_end(request)
            raise


async def _read_to_end(request: Request) -> None:
    """Take in the rest of a refused upload: a client that is still sending reads no answer."""
    try:
        async for _ in request.stream():
            pass
    except (ClientDisconnect, RuntimeError):
        # RuntimeError: the body was read to its end already.
        return


def _add_attachments(router: APIRouter, service: MediaService) -> None:
    @router.get(
        "/attachments",
        response_model=AttachmentList,
        summary="List attachments",
        description="Attachments of the open vault, newest first.",
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_attachments(query: Annotated[AttachmentQuery, Query()]) -> AttachmentList:
        return await service.attachments.list(query)

    @router.get(
        "/attachments/{attachment_id}",
        response_model=Attachment,
        summary="Get an attachment",
        description="What is known of an attachment; its bytes are at `…/content`.",
        responses=error_responses("ATTACHMENT_NOT_FOUND", "VAULT_NOT_OPEN"),
    )
    async def get_attachment(attachment_id: str) -> Attachment:
        return await service.attachments.get(attachment_id)

    @router.delete(
        "/attachments/{attachment_id}",
        status_code=204,
        summary="Delete an attachment",
        description="Deletes the file. What a finished job or a note refers to is deleted with `force` "
        "only, and never while a job works on it.",
        responses=error_responses("ATTACHMENT_NOT_FOUND", "ATTACHMENT_IN_USE", "VAULT_NOT_OPEN"),
    )
    async def delete_attachment(
        attachment_id: str,
        force: Annotated[
            bool, Query(description="Delete it though something refers to it.")
        ] = False,
    ) -> Response:
        await service.attachments.delete(attachment_id, force=force)
        return Response(status_code=204)


def _add_content(router: APIRouter, service: MediaService) -> None:
    @router.get(
        "/attachments/{attachment_id}/content",
        response_class=Response,
        summary="Get an attachment's bytes",
        description="Supports Range, If-Range and If-None-Match, so that a player can seek. Documents are "
        "sent for saving, the rest for showing. A ticket opens this path to an `<audio>` or `<img>`.",
        responses=CONTENT_RESPONSES
        | error_responses("ATTACHMENT_NOT_FOUND", "VAULT_NOT_OPEN", "RANGE_NOT_SATISFIABLE"),
    )
    async def get_attachment_content(attachment_id: str, request: Request) -> Response:
        return _content(request, await service.attachments.file(attachment_id))


def _content(request: Request, file: AttachmentFile) -> Response:
    attachment = file.attachment
    etag = f'"{attachment.sha256}"'
    shown = "attachment" if attachment.kind == "document" else "inline"
    headers = {
        "ETag": etag,
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f"{shown}; filename*=UTF-8''{quote(attachment.file_name, safe='')}",
    }
    known = request.headers.get("if-none-match", "")
    if known.strip() == "*" or etag in [tag.strip().removeprefix("W/") for tag in known.split(",")]:
        return Response(status_code=304, headers=headers)
    response = FileResponse(file.path, media_type=attachment.mime_type, headers=headers)
    asked = request.headers.get("range")
    applies = request.headers.get("if-range", etag) == etag
    if asked is not None and applies and not usable_range(asked, attachment.size):
        # An invalid header counts as absent; FileResponse would refuse it.
        request.scope["headers"] = [
            pair for pair in request.scope["headers"] if pair[0] != b"range"
        ]
    return response


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
        responses=EVENT_RESPONSES
        | error_responses("RESOURCE_NOT_FOUND", "TRACE_CURSOR_INVALID", "VAULT_NOT_OPEN"),
    )
    async def stream_transcription_events(
        job_id: str,
        last_event_id: Annotated[
            str | None,
            Header(description="The id of the last event that was seen; wins over the query."),
        ] = None,
        after_sequence: Annotated[
            str | None, Query(description="Only events after this sequence.")
        ] = None,
    ) -> Response:
        await service.transcriptions.job(job_id)
        return await resource_stream(
            service.events, job_id, last_event_id=last_event_id, after_sequence=after_sequence
        )


def _add_notes(router: APIRouter, service: MediaService) -> None:
    @router.post(
        "/transcriptions/{job_id}/notes",
        status_code=201,
        response_model=Note,
        summary="Make a note of a transcript",
        description="Writes the current revision into the vault. With `update_existing` the note made earlier "
        "with the same title, folder, flags and template gets it instead (200), unless its text was changed.",
        responses=UPDATED_NOTE
        | error_responses(
            "RESOURCE_NOT_FOUND",
            "TRANSCRIPT_NOT_READY",
            "NOTE_UPDATE_BASELINE_MISSING",
            "NOTE_CONTENT_CONFLICT",
            "VAULT_NOT_OPEN",
        ),
    )
    async def create_transcript_note(
        job_id: str, body: TranscriptNoteRequest, response: Response
    ) -> Note:
        written = await service.notes.write(job_id, body)
        response.status_code = 201 if written.created else 200
        return written.note


def _add_revisions(router: APIRouter, service: MediaService) -> None:
    @router.get(
        "/transcriptions/{job_id}/revisions",
        response_model=RevisionList,
        summary="List a transcript's revisions",
        description="Newest first. Revision 1 is the recogniser's own result.",
        responses=error_responses("RESOURCE_NOT_FOUND", "TRANSCRIPT_NOT_READY", "VAULT_NOT_OPEN"),
    )
    async def list_transcript_revisions(
        job_id: str, query: Annotated[PageQuery, Query()]
    ) -> RevisionList:
        return await service.revisions.list(job_id, query)

    @router.get(
        "/transcriptions/{job_id}/revisions/{revision}",
        response_model=RevisionDetail,
        summary="Get a revision",
        description="A revision never changes.",
        responses=error_responses("RESOURCE_NOT_FOUND", "TRANSCRIPT_NOT_READY", "VAULT_NOT_OPEN"),
    )
    async def get_transcript_revision(job_id: str, revision: str) -> RevisionDetail:
        return await service.revisions.get(job_id, revision)

    @router.patch(
        "/transcriptions/{job_id}/revisions",
        response_model=RevisionDetail,
        summary="Edit a transcript",
        description="Makes a new revision: other texts and speakers of segments, segments split and merged, "
        "names of speakers.",
        responses=error_responses(
            "RESOURCE_NOT_FOUND",
            "TRANSCRIPT_NOT_READY",
            "TRANSCRIPT_REVISION_CONFLICT",
            "VAULT_NOT_OPEN",
        ),
    )
    async def edit_transcript(job_id: str, body: RevisionEdit) -> RevisionDetail:
        return await service.revisions.edit(job_id, body)


def _add_speaker_matches(router: APIRouter, service: MediaService) -> None:
    @router.post(
        "/speaker-matches",
        response_model=SpeakerMatch,
        summary="Compare two voices",
        description="Tells how probable it is that two recordings are of one speaker: by the provider of the "
        "speaker matching route, else by the local speaker model. Closing the request ends the work.",
        responses=error_responses(
            "ATTACHMENT_NOT_FOUND",
            "UNSUPPORTED_AUDIO_FORMAT",
            "AUDIO_TOO_SHORT",
            "LOCAL_MODEL_NOT_INSTALLED",
            "VAULT_NOT_OPEN",
        ),
    )
    async def match_speakers(body: SpeakerMatchRequest, request: Request) -> SpeakerMatch:
        return await unless_hung_up(request, service.speaker_matching.match(body))


def _add_subtitles(router: APIRouter, service: MediaService) -> None:
    @router.get(
        "/transcriptions/{job_id}/subtitles",
        response_class=Response,
        summary="Get a transcript as subtitles",
        description="SubRip or WebVTT, in lines of at most 42 columns, with the names of the speakers.",
        responses=SUBTITLE_RESPONSES
        | error_responses("RESOURCE_NOT_FOUND", "TRANSCRIPT_NOT_READY", "VAULT_NOT_OPEN"),
    )
    async def get_transcript_subtitles(
        job_id: str, query: Annotated[SubtitleQuery, Query()]
    ) -> Response:
        subtitles = await service.subtitles.write(
            job_id, query.format, revision=query.revision, speakers=query.speakers
        )
        disposition = f"attachment; filename*=UTF-8''{quote(subtitles.file_name, safe='')}"
        return Response(
            subtitles.content,
            media_type=subtitles.media_type,
            headers={"Content-Disposition": disposition},
        )
