"""Paths of the program itself."""

from collections.abc import Callable

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

from sidecar.kernel.errors import error_responses
from sidecar.kernel.jobs.schemas import OperationResponse
from sidecar.system.docs_page import docs_page, home_page
from sidecar.system.schemas import (
    HostStatus,
    Liveness,
    NetworkSettings,
    PackageHandle,
    PackageRequest,
    SystemHealth,
    SystemInfo,
    Ticket,
    TicketRequest,
    VaultRequest,
    VaultState,
)
from sidecar.system.service import SystemService


def build_router(service: SystemService, request_stop: Callable[[], None]) -> APIRouter:
    """Return the routes; *request_stop* begins a graceful stop."""
    router = APIRouter()

    @router.get("/health", summary="Whether the server lives", tags=["system"])
    async def health() -> Liveness:
        """Open to everybody on this machine; says nothing but that the server lives."""
        return Liveness(status="ok")

    @router.get("/api/system/info", summary="Versions, folders and capabilities", tags=["system"])
    async def system_info() -> SystemInfo:
        """What this program is, the state of its folders, and what can be done here and now."""
        return await service.info()

    @router.get("/api/system/health", summary="Health of each subsystem", tags=["system"])
    async def system_health() -> SystemHealth:
        """Answers 200 also when something is wrong; the body says what."""
        return await service.health()

    @router.post(
        "/api/system/shutdown", status_code=202, summary="Stop the server", tags=["system"]
    )
    async def shutdown() -> OperationResponse:
        """Needs the host token. The stop begins after this answer and takes 10 s at the most."""
        request_stop()
        return OperationResponse.accepted("shutdown_requested")

    @router.post(
        "/api/tickets",
        status_code=201,
        summary="Make an address for an element of a page",
        tags=["system"],
        responses=error_responses(
            "ATTACHMENT_NOT_FOUND", "EXPORT_JOB_NOT_FOUND", "RESOURCE_NOT_FOUND"
        ),
    )
    async def create_ticket(request: TicketRequest) -> Ticket:
        """For audio, images and downloads, which can't send a header.

        The address opens that one path with GET, as often as needed, for 10 minutes.
        """
        return await service.issue_ticket(request.path)

    @router.get("/api/system/network", summary="How the program gets out", tags=["system"])
    async def network_settings() -> NetworkSettings:
        """The proxy and the certificate authorities that are set."""
        return await service.network()

    @router.put("/api/system/network", summary="Set how the program gets out", tags=["system"])
    async def set_network_settings(request: NetworkSettings) -> NetworkSettings:
        """Holds from the next request to a provider and the next download on. Both fields are set."""
        return await service.set_network(request)

    _add_host_routes(router, service)
    _add_pages(router)
    return router


def _add_host_routes(router: APIRouter, service: SystemService) -> None:
    @router.post(
        "/host/vault",
        summary="Choose the vault",
        tags=["host"],
        responses=error_responses("VAULT_PATH_INVALID"),
    )
    async def open_vault(request: VaultRequest) -> VaultState:
        """Make an existing folder the current vault; it is opened again at the next start."""
        return VaultState(vault_path=await service.open_vault(request.path))

    @router.post(
        "/host/packages",
        status_code=201,
        summary="Make a handle for a chosen file or folder",
        tags=["host"],
        responses=error_responses("PACKAGE_PATH_INVALID"),
    )
    async def create_package(request: PackageRequest) -> PackageHandle:
        """The handle is what installs and imports take; it ends after 30 minutes or at a restart."""
        package_id, expires_at = service.packages.create(request.path)
        return PackageHandle(package_id=package_id, expires_at=expires_at)

    @router.get("/host/status", summary="Processes and real paths", tags=["host"])
    async def host_status() -> HostStatus:
        """What the host may know about its sidecar."""
        return service.status()


def _add_pages(router: APIRouter) -> None:
    @router.get("/openapi.json", include_in_schema=False)
    async def openapi_json(request: Request) -> JSONResponse:
        return JSONResponse(request.app.openapi())

    @router.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(docs_page(request.app.openapi()))

    @router.get("/", include_in_schema=False)
    async def home() -> HTMLResponse:
        return HTMLResponse(home_page())
