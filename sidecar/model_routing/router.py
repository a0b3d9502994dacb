"""Paths of model routing."""

from fastapi import APIRouter, Request, Response

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.hang_up import unless_hung_up
from sidecar.model_routing.schemas import (
    Embeddings,
    EmbeddingsRequest,
    ModelRouting,
    ModelRoutingConfig,
)
from sidecar.model_routing.service import ModelRoutingService


def build_router(service: ModelRoutingService) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["models"])

    @router.get("/api/model-routing", summary="Who does what besides chat")
    async def get_model_routing() -> ModelRouting:
        """Which provider embeds, transcribes and matches speakers, and which local models there are."""
        return await service.read()

    @router.put(
        "/api/model-routing",
        summary="Change who does what besides chat",
        responses=error_responses(
            "MODEL_ROUTING_VERSION_CONFLICT", "RESOURCE_NOT_FOUND", "MODEL_CAPABILITY_MISMATCH"
        ),
    )
    async def put_model_routing(request: ModelRoutingConfig) -> ModelRoutingConfig:
        """Takes the whole `config` that GET gives, changed, and returns it with the next version.

        A route is asked first; a local model steps in when its provider fails. Another embedding
        route has an index of its own, which `POST /api/index/rebuild` builds.
        """
        return await service.replace(request)

    @router.post(
        "/api/models/embeddings",
        summary="Embed texts",
        response_model=Embeddings,
        responses=error_responses("LOCAL_MODEL_NOT_INSTALLED", "EMBEDDING_MODEL_UNAVAILABLE"),
    )
    async def create_embeddings(request: EmbeddingsRequest, connection: Request) -> Response:
        """By the routed provider, or else by the local model, which takes the texts as passages.

        With neither, 409 `LOCAL_MODEL_NOT_INSTALLED`; `details.fallback_reason` is the code of the
        provider's failure. Closing the request ends the work for it.
        """
        found = await unless_hung_up(connection, service.embeddings(request.texts))
        # Hundreds of thousands of numbers: the framework's own way takes five times as long.
        return Response(found.model_dump_json(), media_type="application/json")

    return router
