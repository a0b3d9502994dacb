"""Paths of search and of the index."""

from fastapi import APIRouter, Request

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.hang_up import unless_hung_up
from sidecar.retrieval.schemas import (
    IndexStatus,
    RebuildAccepted,
    RebuildRequest,
    SearchRequest,
    SearchResponse,
)
from sidecar.retrieval.service import RetrievalService


def build_router(service: RetrievalService) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["search"])

    @router.post(
        "/api/search",
        summary="Search the notes",
        responses=error_responses(
            "VAULT_NOT_OPEN",
            "EMBEDDING_MODEL_UNAVAILABLE",
            "EMBEDDING_DIMENSION_MISMATCH",
            "INDEX_MODEL_MISMATCH",
            "VECTOR_INDEX_REBUILD_REQUIRED",
        ),
    )
    async def search(request: SearchRequest, connection: Request) -> SearchResponse:
        """Find blocks of notes, best first.

        The mode that was asked for is the one that answers: where `vector` and `hybrid` can't be
        used, the error says why, and the client falls back to `fts`. Closing the request ends the
        search.
        """
        return await unless_hung_up(connection, service.search(request))

    @router.get("/api/index/status", summary="State of the search index")
    async def get_index_status() -> IndexStatus:
        """What the index is doing, and which model its vectors were made with."""
        return await service.status()

    @router.post(
        "/api/index/rebuild",
        status_code=202,
        summary="Build the search index anew",
        responses=error_responses("VAULT_NOT_OPEN", "EMBEDDING_MODEL_UNAVAILABLE"),
    )
    async def rebuild_index(request: RebuildRequest) -> RebuildAccepted:
        """Answers at once; `GET /api/index/status` tells how far it is.

        What is there serves until the new is whole, and stays if the rebuild fails. A rebuild of
        this scope that isn't done yet is returned instead of a second one.
        """
        return await service.rebuild(request.scope)

    return router
