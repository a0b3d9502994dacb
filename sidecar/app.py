"""Builds the application: every path, and what all of them have in common."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, FastAPI

from host_bridge.protocol import SessionSettings
from sidecar.chat import router as chat_router
from sidecar.credentials import router as credentials_router
from sidecar.credentials.service import CredentialService
from sidecar.export import router as export_router
from sidecar.kernel.http.body_limit import MEBIBYTE, BodyLimit, BodyLimitMiddleware
from sidecar.kernel.http.errors import install_error_handlers
from sidecar.kernel.http.json_body import refuse_unstorable_json
from sidecar.kernel.http.openapi import openapi_document
from sidecar.kernel.http.security import SecurityMiddleware
from sidecar.kernel.logging import get_logger
from sidecar.kernel.settings import resolve_settings
from sidecar.local_models import router as local_models_router
from sidecar.media import router as media_router
from sidecar.model_routing import router as model_routing_router
from sidecar.plots import router as plots_router
from sidecar.providers import router as providers_router
from sidecar.retrieval import router as retrieval_router
from sidecar.runtime import router as runtime_router
from sidecar.services import Services, build_services
from sidecar.system import router as system_router
from sidecar.tasks import router as tasks_router
from sidecar.usage import router as usage_router
from sidecar.vault import router as vault_router
from sidecar.version import VERSION

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = get_logger(__name__)

DESCRIPTION: Final = (
    "The local engine of a notes app. Every path but /health needs `Authorization: Bearer <token>`. "
    "Errors have one shape; clients branch on `error.code` alone. Jobs answer 202 at once and tell "
    "their progress through `…/events`, which resumes with `Last-Event-ID`."
)

BODY_LIMITS: Final[dict[str, BodyLimit]] = {
    # An open file of 2,000,000 characters in JSON, with every character escaped that can be, and a
    # history as long as that.
    "/api/chat": BodyLimit(48 * MEBIBYTE),
    # A text of 200,000 characters and the pictures of its diagrams, in JSON.
    "/api/exports": BodyLimit(32 * MEBIBYTE),
    # 8 MiB of text in JSON, with every character escaped that can be.
    "/api/notes": BodyLimit(48 * MEBIBYTE),
}
"""Path → the largest body it takes; it holds for the paths below it too."""
UPLOADS: Final = "/api/media/attachments"


def body_limits(services: Services) -> dict[str, BodyLimit]:
    """Return :data:`BODY_LIMITS` with those that the user's settings decide."""
    # A multipart body is a little larger than the file in it.
    largest = services.media.attachments.size_limit + MEBIBYTE // 16
    return {**BODY_LIMITS, UPLOADS: BodyLimit(largest, "ATTACHMENT_TOO_LARGE")}


def build_api(services: Services, request_stop: Callable[[], None]) -> FastAPI:
    """Return the FastAPI application with every route, without the security layer."""
    api = FastAPI(
        title="NotesAgent Sidecar",
        version=VERSION,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(refuse_unstorable_json)],
    )
    install_error_handlers(api)
    api.include_router(system_router.build_router(services.system, request_stop))
    api.include_router(credentials_router.build_router(CredentialService(services.credentials)))
    api.include_router(export_router.build_router(services.exports))
    api.include_router(plots_router.build_router(services.plots))
    api.include_router(media_router.build_router(services.media))
    api.include_router(vault_router.build_router(services.vault))
    api.include_router(retrieval_router.build_router(services.retrieval))
    api.include_router(tasks_router.build_router(services.tasks))
    api.include_router(chat_router.build_router(services.chat))
    api.include_router(usage_router.build_router(services.usage))
    api.include_router(model_routing_router.build_router(services.routing))
    api.include_router(runtime_router.build_router(services.runtime))
    api.include_router(local_models_router.build_router(services.local_models))
    api.include_router(providers_router.build_router(services.providers))

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = openapi_document(api, body_limits(services))
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]
    return api


def build_asgi(services: Services, request_stop: Callable[[], None]) -> "ASGIApp":
    """Return the whole application, as it is served."""
    api = build_api(services, request_stop)
    return SecurityMiddleware(BodyLimitMiddleware(api, body_limits(services)), services.gate)


def offline_openapi() -> dict[str, Any]:
    """Return the OpenAPI document without a data directory or a running server."""
    settings = resolve_settings(SessionSettings(), data_dir=Path("unused"))
    return build_api(build_services(settings), lambda: None).openapi()
