"""HTTP operations of exports."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse

from sidecar.export.schemas import (
    ExportFile,
    ExportJob,
    ExportJobListResponse,
    ExportListQuery,
    ExportRequest,
)
from sidecar.export.service import MIME_TYPES, ExportService
from sidecar.kernel.catalogue import localise
from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.content_disposition import content_disposition
from sidecar.kernel.jobs.schemas import JobProgress, OperationResponse
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.paging import page_of

TAG: Final = "exports"

# An exported document is a file to keep; should a browser show it, it is nobody's page.
_FILE_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "sandbox",
}


_CREATE: Final = (
    "Queues an export and answers at once. The document is read when the job's turn comes.\n\n"
    "PDF needs libraries that may be missing: then it gets 501 `CAPABILITY_NOT_AVAILABLE` and no job, "
    "and `details` name what is missing and, where one is known, the `command` that installs it.\n\n"
    "`assets` are PNGs that stand in the place of diagrams, formulas and images, found by the hash "
    "of their source; for html and docx 64 at most, each of 4,000,000 pixels and all together of "
    "16,000,000 pixels and 8 MiB. Formulas without one are typeset and function plots are drawn; a "
    "Mermaid diagram without one keeps its source, and so does what can't be understood. The job's "
    "warnings tell of each.\n\n"
    "html and docx take at most 64 formulas and images, formulas of 512 characters and 20 levels, "
    "image files of 2,000,000 bytes, and 64 plots of 16 expressions each and 8,000 nodes in all; "
    "what goes beyond keeps its source or its description. pdf has none of these limits.\n\n"
    "Pictures are taken from the vault alone (PNG, JPEG, WebP); nothing is fetched."
)
_FILE_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The file, as an attachment.",
        "content": {
            mime_type: {"schema": {"type": "string", "format": "binary"}}
            for mime_type in MIME_TYPES.values()
        },
    }
}


def build_router(service: ExportService) -> APIRouter:
    """Return the operations under ``/api/exports``."""
    router = APIRouter(prefix="/api/exports", tags=[TAG])
    _add_creating(router, service)
    _add_reading(router, service)
    _add_cancelling(router, service)
    _add_file(router, service)
    return router


def _add_creating(router: APIRouter, service: ExportService) -> None:
    @router.post(
        "",
        status_code=202,
        summary="Export a note or a text",
        description=_CREATE,
        responses=error_responses(
            "EXPORT_SOURCE_NOT_FOUND",
            "EXPORT_OPTIONS_INVALID",
            "EXPORT_ASSET_INVALID",
            "CAPABILITY_NOT_AVAILABLE",
            "VAULT_NOT_OPEN",
            "VAULT_UNAVAILABLE",
        ),
    )
    async def create_export(request: ExportRequest) -> ExportJob:
        return _job(service, await service.create(request))


def _add_reading(router: APIRouter, service: ExportService) -> None:
    @router.get(
        "",
        summary="List exports",
        description="Exports with the newest first. An empty query value counts as absent.",
    )
    async def list_exports(query: Annotated[ExportListQuery, Query()]) -> ExportJobListResponse:
        jobs, total = await service.list(query)
        return ExportJobListResponse(
            items=[_job(service, job) for job in jobs], page=page_of(total, query)
        )

    @router.get(
        "/{job_id}",
        summary="Read an export",
        description=(
            "The export as it is now. A failed one has `error_code` EXPORT_SOURCE_NOT_FOUND, "
            "EXPORT_OUTPUT_TOO_LARGE, EXPORT_UNSUPPORTED_CONTENT, EXPORT_RENDER_FAILED or JOB_INTERRUPTED."
        ),
        responses=error_responses("EXPORT_JOB_NOT_FOUND"),
    )
    async def get_export(job_id: str) -> ExportJob:
        return _job(service, await service.get(job_id))


def _add_cancelling(router: APIRouter, service: ExportService) -> None:
    @router.post(
        "/{job_id}/cancel",
        status_code=202,
        summary="Cancel an export",
        description="Records the request; the export's state tells when it has stopped.",
        responses=error_responses("EXPORT_JOB_NOT_FOUND", "JOB_ALREADY_FINISHED"),
    )
    async def cancel_export(job_id: str) -> OperationResponse:
        await service.cancel(job_id)
        return OperationResponse.accepted("cancel_requested")


def _add_file(router: APIRouter, service: ExportService) -> None:
    @router.get(
        "/{job_id}/file",
        summary="Download an exported file",
        description=(
            "The file of a completed export, until its `expires_at`. 404 as long as there is none, and for "
            "exports that failed or were cancelled."
        ),
        response_class=Response,
        responses={
            **_FILE_RESPONSE,
            **error_responses("EXPORT_JOB_NOT_FOUND", "EXPORT_FILE_EXPIRED"),
        },
    )
    async def download_export(job_id: str) -> FileResponse:
        artefact = await service.download(job_id)
        disposition = {"Content-Disposition": content_disposition(artefact.file_name)}
        return FileResponse(
            artefact.path, media_type=artefact.mime_type, headers=_FILE_HEADERS | disposition
        )


def _job(service: ExportService, job: Job) -> ExportJob:
    artefact, error = service.artefact(job), job.error
    return ExportJob(
        job_id=job.job_id,
        status=job.status,
        format=job.request["format"],
        progress=JobProgress.of(job.progress),
        file=ExportFile.model_validate(artefact, from_attributes=True) if artefact else None,
        warnings=localise(job.result["warnings"]) if job.result else [],
        error=error.message() if error else None,
        error_code=job.error_code,
        created_at=job.created_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
    )
