"""Paths of what is made of a transcript."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.content_disposition import content_disposition
from sidecar.kernel.paging import PageQuery
from sidecar.media.schemas import (
    RevisionDetail,
    RevisionEdit,
    RevisionList,
    SubtitleQuery,
    TranscriptNoteRequest,
)
from sidecar.media.service import MediaService
from sidecar.vault.schemas import Note

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


def add_routes(router: APIRouter, service: MediaService) -> None:
    """Add the paths of notes, revisions and subtitles."""
    _add_notes(router, service)
    _add_revisions(router, service)
    _add_subtitles(router, service)


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
        return Response(
            subtitles.content,
            media_type=subtitles.media_type,
            headers={"Content-Disposition": content_disposition(subtitles.file_name)},
        )
