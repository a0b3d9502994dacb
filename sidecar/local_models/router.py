"""HTTP operations of local models."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.convertors import StringConvertor, register_url_convertor

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.sse import AfterSequence, LastEventId, resource_stream, stream_responses
from sidecar.kernel.jobs.schemas import OperationResponse
from sidecar.kernel.paging import PageQuery
from sidecar.local_models.schemas import (
    DiagnosticsResponse,
    LocalModel,
    LocalModelListResponse,
    ModelImportRequest,
)
from sidecar.local_models.service import LocalModelService


class _ModelIdConvertor(StringConvertor):
    """A part of a path that isn't the fixed one of the diagnostics."""

    regex = "(?!diagnostics$)[^/]+"


def build_router(service: LocalModelService) -> APIRouter:
    """Return the operations under ``/api/local-models``."""
    register_url_convertor("local_model", _ModelIdConvertor())
    router = APIRouter(prefix="/api/local-models", tags=["local models"])
    _add_listing(router, service)
    _add_transfers(router, service)
    _add_verification(router, service)
    _add_removal(router, service)
    _add_events(router, service)
    return router


def _add_listing(router: APIRouter, service: LocalModelService) -> None:
    @router.get(
        "",
        summary="List local models",
        description="The models of the catalogue, installed or not, and those that lie in the model "
        "folders besides. Nothing is fetched or loaded.",
    )
    async def list_local_models(query: Annotated[PageQuery, Query()]) -> LocalModelListResponse:
        return await service.page(query)

    @router.get(
        "/diagnostics",
        summary="Read what local models did",
        description="The newest 200 attempts of the application to use a local model, newest first, "
        "with the device that the work really ran on. They hold no text, file name or path.",
    )
    async def get_local_model_diagnostics() -> DiagnosticsResponse:
        return await service.diagnostics()


def _add_transfers(router: APIRouter, service: LocalModelService) -> None:
    @router.post(
        "/{model_id}/download",
        status_code=202,
        summary="Download a model",
        description=(
            "Downloads in the background and answers with the model. Asked for again it joins the "
            "download that waits or runs; a model that is installed and whole is left as it is, and a "
            "damaged one is fetched anew. A later request goes on from the bytes that an earlier one "
            "fetched. The model is installed once every file is there and has the right hash.\n\n"
            "A failed one has `download.error.code` MODEL_DOWNLOAD_FAILED, MODEL_HASH_MISMATCH or "
            "DISK_SPACE_INSUFFICIENT. Where the owner of a gated model refused, the first has a `reason` in its "
            "`details`, `token_missing` or `token_refused`, an `explanation` and the `page_url`."
        ),
        responses=error_responses("MODEL_NOT_FOUND", "MODEL_IN_USE"),
    )
    async def download_local_model(model_id: str) -> LocalModel:
        return await service.download(model_id)

    @router.post(
        "/{model_id}/cancel",
        status_code=202,
        summary="Cancel a download, an import or a verification",
        description="Records the request; the terminal event tells that it has stopped. What was "
        "downloaded stays for the next attempt.",
        responses=error_responses("MODEL_NOT_FOUND", "DOWNLOAD_NOT_ACTIVE"),
    )
    async def cancel_local_model(model_id: str) -> OperationResponse:
        await service.cancel(model_id)
        return OperationResponse.accepted("cancel_requested")

    @router.post(
        "/{model_id}/import",
        status_code=202,
        summary="Import a model from a folder or an archive",
        description=(
            "Copies the model's files, or links to them, from what the host registered with `POST /host/packages`: a "
            "folder, a zip or a tar, in which they may lie in a folder below. The source isn't changed. "
            "Only a complete model with the right files becomes installed.\n\n"
            "A failed import has `download.error.code` MODEL_INVALID, whose `details` have a `reason`, "
            "an `explanation`, and name the `missing` or `wrong` files, or DISK_SPACE_INSUFFICIENT."
        ),
        responses=error_responses("MODEL_NOT_FOUND", "RESOURCE_NOT_FOUND", "MODEL_IN_USE"),
    )
    async def import_local_model(model_id: str, request: ModelImportRequest) -> LocalModel:
        return await service.import_package(model_id, request.package_id, link=request.link)


def _add_verification(router: APIRouter, service: LocalModelService) -> None:
    @router.post(
        "/{model_id}/verify",
        status_code=202,
        summary="Verify a model",
        description="Reads every file of an installed model in the background and answers with the model. Asked for "
        "again it joins the verification that waits or runs. `Progress` tells how much was read, and `Completed` "
        "whether the model is `damaged`: a file isn't what was installed, also where neither its length nor its "
        "time has changed. A download repairs it.",
        responses=error_responses("MODEL_NOT_FOUND", "MODEL_IN_USE", "LOCAL_MODEL_NOT_INSTALLED"),
    )
    async def verify_local_model(model_id: str) -> LocalModel:
        return await service.verify(model_id)


def _add_removal(router: APIRouter, service: LocalModelService) -> None:
    @router.delete(
        "/{model_id:local_model}",
        status_code=204,
        summary="Remove a model",
        description="Removes the model's folder from the managed folder; of one that isn't installed, what an "
        "unfinished download left. A model in another folder counts as not installed here.",
        responses=error_responses("MODEL_NOT_FOUND", "MODEL_IN_USE", "LOCAL_MODEL_NOT_INSTALLED"),
    )
    async def delete_local_model(model_id: str) -> Response:
        await service.delete(model_id)
        return Response(status_code=204)


def _add_events(router: APIRouter, service: LocalModelService) -> None:
    @router.get(
        "/{model_id}/events",
        summary="Follow a model's downloads, imports and verifications",
        description=(
            "Server-sent events: `Queued`, `Progress` with `bytes`, `total` and `bytes_per_second`, then "
            "one of `Completed`, `Failed` and `Cancelled`. Sequences go on from one of them to the next: "
            "without a cursor the stream begins with the latest, with one it ends at the first terminal "
            "event after it. Of a model that had none yet it stays open and tells of the first."
        ),
        response_class=Response,
        responses={
            **stream_responses(runs_again=True),
            **error_responses("MODEL_NOT_FOUND", "TRACE_CURSOR_INVALID"),
        },
    )
    async def stream_local_model(
        model_id: str,
        last_event_id: LastEventId = None,
        after_sequence: AfterSequence = None,
    ) -> Response:
        return await resource_stream(
            service.events,
            model_id,
            last_event_id=last_event_id,
            after_sequence=after_sequence,
            beginning=await service.beginning(model_id),
        )
