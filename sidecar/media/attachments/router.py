"""Paths of attachments."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect

from sidecar.kernel.errors import ProjectError, error_responses
from sidecar.kernel.http.content_disposition import content_disposition
from sidecar.media.attachments.byte_range import usable_range
from sidecar.media.attachments.service import AttachmentFile, AttachmentService
from sidecar.media.input_errors import invalid
from sidecar.media.schemas import Attachment, AttachmentList, AttachmentQuery

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


def add_routes(router: APIRouter, service: AttachmentService) -> None:
    """Add the paths of attachments."""
    _add_uploads(router, service)
    _add_attachments(router, service)
    _add_content(router, service)


def _add_uploads(router: APIRouter, service: AttachmentService) -> None:
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
            return await service.upload(
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


def _add_attachments(router: APIRouter, service: AttachmentService) -> None:
    @router.get(
        "/attachments",
        response_model=AttachmentList,
        summary="List attachments",
        description="Attachments of the open vault, newest first.",
        responses=error_responses("VAULT_NOT_OPEN"),
    )
    async def list_attachments(query: Annotated[AttachmentQuery, Query()]) -> AttachmentList:
        return await service.list(query)

    @router.get(
        "/attachments/{attachment_id}",
        response_model=Attachment,
        summary="Get an attachment",
        description="What is known of an attachment; its bytes are at `…/content`.",
        responses=error_responses("ATTACHMENT_NOT_FOUND", "VAULT_NOT_OPEN"),
    )
    async def get_attachment(attachment_id: str) -> Attachment:
        return await service.get(attachment_id)

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
        await service.delete(attachment_id, force=force)
        return Response(status_code=204)


def _add_content(router: APIRouter, service: AttachmentService) -> None:
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
        return _content(request, await service.file(attachment_id))


def _content(request: Request, file: AttachmentFile) -> Response:
    attachment = file.attachment
    etag = f'"{attachment.sha256}"'
    headers = {
        "ETag": etag,
        "Cache-Control": "private, no-cache",
        "Content-Disposition": content_disposition(
            attachment.file_name, inline=attachment.kind != "document"
        ),
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
