"""Paths of usage."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from sidecar.kernel.clock import utc_now
from sidecar.kernel.http.content_disposition import content_disposition
from sidecar.usage.export import MEDIA_TYPES, writer_of
from sidecar.usage.schemas import ExportQuery, Usage, UsageExport, UsageQuery
from sidecar.usage.service import UsageService

_FILE_HEADERS: Final = {"Cache-Control": "no-store"}


def build_router(service: UsageService) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/api/usage", tags=["usage"])

    @router.get("", summary="What model calls used")
    async def get_usage(query: Annotated[UsageQuery, Query()]) -> Usage:
        """Sums over every attempt of every caller: chat, agent, benchmarks, embedding, audio, probes.

        Tokens and lengths are summed as providers reported them; nothing is estimated. The ledger
        outlives the providers that it tells of.
        """
        return await service.sums(query)

    @router.get(
        "/export",
        summary="Download the ledger of model calls",
        response_class=Response,
        responses={
            200: {
                "description": "The attempts, oldest first, as an attachment.",
                "model": UsageExport,
                "content": {MEDIA_TYPES["csv"].split(";")[0]: {"schema": {"type": "string"}}},
            }
        },
    )
    async def export_usage(query: Annotated[ExportQuery, Query()]) -> StreamingResponse:
        """One row an attempt. It holds no prompt, no answer, no file name, no key and no credential id.

        CSV is UTF-8 with a byte order mark; a name that a spreadsheet would take for a formula
        begins with an apostrophe.
        """
        name = f"usage-{utc_now()[:10]}.{query.format}"
        return StreamingResponse(
            service.export(query, writer_of(query.format)),
            media_type=MEDIA_TYPES[query.format],
            headers={**_FILE_HEADERS, "Content-Disposition": content_disposition(name)},
        )

    return router
