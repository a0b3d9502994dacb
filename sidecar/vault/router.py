"""Paths of notes, folders, tags and the trash."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator, Field

from sidecar.kernel.errors import error_responses
from sidecar.kernel.paging import PageQuery, empty_as_absent
from sidecar.vault.schemas import (
    EXPECTED_HASH,
    FOLDER,
    FolderList,
    Note,
    NoteCreate,
    NoteList,
    NoteMove,
    NotePatch,
    NotePut,
    NoteSort,
    SkippedList,
    TagList,
    TrashList,
    VaultStatus,
)
from sidecar.vault.service import NoteFilter, VaultService

_CHANGE_ERRORS = (
    "VAULT_NOT_OPEN",
    "RESOURCE_NOT_FOUND",
    "NOTE_CONTENT_CONFLICT",
    "VAULT_UNAVAILABLE",
    "DISK_SPACE_INSUFFICIENT",
)


Filter = Annotated[str | None, BeforeValidator(empty_as_absent)]


def _sort_or_default(value: object) -> object:
    return "updated_at" if value in ("", None) else value


class NoteListQuery(PageQuery):
    """Filters and order of the list of notes."""

    folder: str | None = Field(None, description=f"{FOLDER} Subfolders are included.")
    tag: Filter = Field(None, description="Notes with this tag, without regard to case.")
    title: Filter = Field(None, description="Notes whose title contains this text.")
    sort: Annotated[NoteSort, BeforeValidator(_sort_or_default)] = Field(
        "updated_at",
        description="`updated_at` and `created_at`: newest first; `title`: in alphabetical order.",
    )


def build_router(service: VaultService) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    _add_reading(router, service)
    _add_creating(router, service)
    _add_changing(router, service)
    _add_moving(router, service)
    _add_vault(router, service)
    return router


def _add_reading(router: APIRouter, service: VaultService) -> None:
    @router.get(
        "/api/notes",
        summary="List notes",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_notes(query: Annotated[NoteListQuery, Query()]) -> NoteList:
        """The notes without their texts. What another program changed shows here within 2 s."""
        wanted = NoteFilter(query.folder, query.tag, query.title, query.sort)
        return await service.list_notes(wanted, query)

    @router.get(
        "/api/notes/{note_id}",
        summary="Read a note",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN", "RESOURCE_NOT_FOUND"),
    )
    async def get_note(note_id: str) -> Note:
        """The note as its file is at this moment, also if another program has just changed it."""
        return await service.get_note(note_id)

    @router.get(
        "/api/folders",
        summary="List folders",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN", "VAULT_UNAVAILABLE"),
    )
    async def list_folders() -> FolderList:
        """All folders of the vault, empty ones included; not the trash and hidden folders."""
        return await service.folders()

    @router.get(
        "/api/tags",
        summary="List tags",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_tags() -> TagList:
        """All tags in use. Tags that differ in case alone are one tag."""
        return await service.tags()


def _add_creating(router: APIRouter, service: VaultService) -> None:
    @router.post(
        "/api/notes",
        status_code=201,
        summary="Create a note",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN", "VAULT_UNAVAILABLE", "DISK_SPACE_INSUFFICIENT"),
    )
    async def create_note(request: NoteCreate) -> Note:
        """Write a new Markdown file. A name that is taken gets a number; nothing is overwritten.

        The note can be found by full text search as soon as this is answered.
        """
        return await service.create_note(
            request.title, request.content, request.folder, request.tags
        )


def _add_changing(router: APIRouter, service: VaultService) -> None:
    @router.put(
        "/api/notes/{note_id}",
        summary="Replace a note's text",
        tags=["notes"],
        responses=error_responses(*_CHANGE_ERRORS),
    )
    async def replace_note(note_id: str, request: NotePut) -> Note:
        """Write the whole text anew.

        A file with CRLF line endings keeps them if the new text has only LF; a byte order mark stays.
        """
        return await service.update_note(
            note_id,
            title=request.title,
            content=request.content,
            tags=request.tags,
            expected_content_hash=request.expected_content_hash,
        )

    @router.patch(
        "/api/notes/{note_id}",
        summary="Change a note",
        tags=["notes"],
        responses=error_responses(*_CHANGE_ERRORS),
    )
    async def update_note(note_id: str, request: NotePatch) -> Note:
        """Change title, tags or text. A new title renames the file and leaves the text alone."""
        return await service.update_note(
            note_id,
            title=request.title,
            content=request.content,
            tags=request.tags,
            expected_content_hash=request.expected_content_hash,
        )


def _add_moving(router: APIRouter, service: VaultService) -> None:
    @router.post(
        "/api/notes/{note_id}/move",
        summary="Move a note to another folder",
        tags=["notes"],
        responses=error_responses(*_CHANGE_ERRORS),
    )
    async def move_note(note_id: str, request: NoteMove) -> Note:
        """The note keeps its id and text; where its file name is taken it gets a number."""
        return await service.move_note(
            note_id, request.folder, expected_content_hash=request.expected_content_hash
        )

    @router.delete(
        "/api/notes/{note_id}",
        status_code=204,
        summary="Move a note to the trash",
        tags=["notes"],
        responses=error_responses(*_CHANGE_ERRORS),
    )
    async def delete_note(
        note_id: str,
        expected_content_hash: Annotated[str | None, Query(description=EXPECTED_HASH)] = None,
    ) -> Response:
        """The file goes to the folder `.trash` of the vault; it isn't erased."""
        await service.delete_note(note_id, expected_content_hash=expected_content_hash)
        return Response(status_code=204)


def _add_vault(router: APIRouter, service: VaultService) -> None:
    @router.get(
        "/api/trash",
        summary="List the notes in the trash",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_trash(page: Annotated[PageQuery, Query()]) -> TrashList:
        """The notes that were deleted through the app, the last first."""
        return await service.trash(page)

    @router.post(
        "/api/trash/{note_id}/restore",
        summary="Bring a note back from the trash",
        tags=["notes"],
        responses=error_responses(
            "VAULT_NOT_OPEN", "RESOURCE_NOT_FOUND", "VAULT_UNAVAILABLE", "DISK_SPACE_INSUFFICIENT"
        ),
    )
    async def restore_note(note_id: str) -> Note:
        """The file goes back to where it lay, under its old id."""
        return await service.restore_note(note_id)

    @router.get("/api/vault", summary="State of the vault", tags=["notes"])
    async def get_vault() -> VaultStatus:
        """Whether a vault is open and how far its notes have been taken in."""
        return await service.status()

    @router.get(
        "/api/vault/skipped",
        summary="List the files that were skipped",
        tags=["notes"],
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_skipped_files(page: Annotated[PageQuery, Query()]) -> SkippedList:
        """Files of the vault that look like notes and can't be read as such, with the reasons."""
        return await service.skipped(page)
