"""HTTP operations of the runtime component."""

from fastapi import APIRouter, Response

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.sse import AfterSequence, LastEventId, resource_stream, stream_responses
from sidecar.runtime.installations import RESOURCE
from sidecar.runtime.schemas import RuntimeComponent
from sidecar.runtime.service import RuntimeService


def build_router(service: RuntimeService) -> APIRouter:
    """Return the operations under ``/api/local-models/runtime-components/cuda``."""
    router = APIRouter(prefix="/api/local-models/runtime-components/cuda", tags=["local models"])

    @router.get("", summary="Read the runtime component")
    async def get_runtime_component() -> RuntimeComponent:
        """How the runtime is. Answers at once, and downloads and installs nothing."""
        return await service.component()

    @router.post(
        "",
        status_code=202,
        summary="Install the runtime component",
        description="Installs in the background. Asked for again it joins the installation that runs; a "
        "runtime that is installed and works is left as it is, and a Python of the user's own is examined "
        "anew and never changed. An installation that fails leaves the earlier runtime working.",
        responses=error_responses("MODEL_IN_USE", "UV_NOT_INSTALLED", "PLATFORM_UNSUPPORTED"),
    )
    async def install_runtime_component() -> RuntimeComponent:
        return await service.install()

    @router.get(
        "/events",
        summary="Follow the installation of the runtime component",
        description="Server-sent events: `Queued`, `Progress` with the `stage`, then `Completed` or "
        "`Failed`. Without a cursor the stream begins with the latest installation; sequences go on from "
        "one installation to the next.",
        response_class=Response,
        responses={**stream_responses(runs_again=True), **error_responses("TRACE_CURSOR_INVALID")},
    )
    async def stream_runtime_component(
        last_event_id: LastEventId = None,
        after_sequence: AfterSequence = None,
    ) -> Response:
        if not (last_event_id or after_sequence):
            after_sequence = str(await service.installations.before_latest())
        return await resource_stream(
            service.installations.log,
            RESOURCE,
            last_event_id=last_event_id,
            after_sequence=after_sequence,
        )

    return router
