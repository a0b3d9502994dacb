"""HTTP operations of model providers."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from starlette.convertors import StringConvertor, register_url_convertor

from sidecar.kernel.errors import error_responses
from sidecar.kernel.paging import PageQuery
from sidecar.providers.schemas.request_overrides import RequestRules
from sidecar.providers.schemas.wire import (
    ModelList,
    PresetList,
    Preview,
    PreviewRequest,
    ProbeRequest,
    ProbeResult,
    Provider,
    ProviderCreateRequest,
    ProviderList,
    ProviderPatch,
    ProviderTestResult,
)
from sidecar.providers.service import ProviderService

UPSTREAM_CODES: Final = (
    "PROVIDER_AUTH_FAILED",
    "PROVIDER_RATE_LIMITED",
    "PROVIDER_TIMEOUT",
    "PROVIDER_UNAVAILABLE",
    "PROVIDER_PROTOCOL_ERROR",
    "PROVIDER_INVALID_RESPONSE",
)
CONFIGURATION_CODES: Final = ("CREDENTIAL_NAMESPACE_RESERVED",)
CALLING_CODES: Final = (*CONFIGURATION_CODES, "CREDENTIAL_STORE_ERROR")


class _ProviderIdConvertor(StringConvertor):
    """A part of a path that isn't one of the fixed ones beside it."""

    regex = "(?!(?:presets|test|request-preview|request-probe)$)[^/]+"


def build_router(service: ProviderService) -> APIRouter:
    """Return the operations under ``/api/providers``."""
    register_url_convertor("provider", _ProviderIdConvertor())
    router = APIRouter(prefix="/api/providers", tags=["providers"])
    _add_stored(router, service)
    _add_checks(router, service)
    return router


def _add_stored(router: APIRouter, service: ProviderService) -> None:
    @router.get("", summary="List providers")
    async def list_providers(query: Annotated[PageQuery, Query()]) -> ProviderList:
        """Oldest first. Reads never show a key, only whether one is stored."""
        return await service.list(query)

    @router.get("/presets", summary="List the vendors to choose from")
    async def list_provider_presets() -> PresetList:
        """Each is enough to create a provider of, once a key is stored under an id of yours."""
        return service.presets()

    @router.post(
        "",
        status_code=201,
        summary="Create a provider",
        responses=error_responses(*CONFIGURATION_CODES),
    )
    async def create_provider(request: ProviderCreateRequest) -> Provider:
        """The key is not part of it: store it with `PUT /api/credentials/{id}` and name that id."""
        return await service.create(request)

    @router.get(
        "/{provider_id:provider}",
        summary="Read a provider",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def get_provider(provider_id: str) -> Provider:
        """As it is stored."""
        return await service.get(provider_id)

    @router.patch(
        "/{provider_id:provider}",
        summary="Change a provider",
        responses=error_responses("RESOURCE_NOT_FOUND", *CONFIGURATION_CODES),
    )
    async def update_provider(provider_id: str, request: ProviderPatch) -> Provider:
        """Change what is sent. The next call follows it; calls that are under way don't notice."""
        return await service.update(provider_id, request)

    @router.delete(
        "/{provider_id:provider}",
        status_code=204,
        summary="Delete a provider",
        responses=error_responses("RESOURCE_NOT_FOUND", "PROVIDER_IN_USE"),
    )
    async def delete_provider(provider_id: str) -> Response:
        """Refused while the model routing names it. Its key stays until it is deleted itself."""
        await service.delete(provider_id)
        return Response(status_code=204)

    @router.get(
        "/{provider_id:provider}/models",
        summary="List a provider's models",
        responses=error_responses(
            "RESOURCE_NOT_FOUND", "PROVIDER_DISABLED", *CALLING_CODES, *UPSTREAM_CODES
        ),
    )
    async def list_provider_models(provider_id: str) -> ModelList:
        """Asked of the provider now. What it doesn't tell of a model is not claimed."""
        return await service.models(provider_id)


def _add_checks(router: APIRouter, service: ProviderService) -> None:
    checks = service.checks

    @router.post(
        "/test",
        summary="Test a configuration",
        responses=error_responses(*CALLING_CODES),
    )
    async def test_provider(request: ProviderCreateRequest) -> ProviderTestResult:
        """One real call: to the default model, or for the list of models where none is named.

        A provider that fails is a result with `success: false`, not an error.
        """
        return await checks.test(request)

    @router.post("/request-rules/validate", summary="Check request rules")
    async def validate_request_rules(request: RequestRules) -> RequestRules:
        """Answers with the rules in their full form. Nothing is stored."""
        return request

    @router.post(
        "/request-preview",
        summary="Show what would be sent",
        responses=error_responses("MODEL_CAPABILITY_MISMATCH", *CONFIGURATION_CODES),
    )
    async def preview_provider_request(request: PreviewRequest) -> Preview:
        """The body alone, with the rules applied and the content hidden. Nothing is sent."""
        return checks.preview(request)

    @router.post(
        "/request-probe",
        summary="Try a configuration with a short conversation",
        responses=error_responses(
            "PROVIDER_EMPTY_RESPONSE",
            "PROVIDER_TIMEOUT",
            *CALLING_CODES,
            *(code for code in UPSTREAM_CODES if code not in _ELSEWHERE),
        ),
    )
    async def probe_provider(request: ProbeRequest) -> ProbeResult:
        """Sends one fixed sentence and waits up to 45 seconds for an answer.

        Whatever the provider does wrong answers 502 with its code, also where the code has another
        status elsewhere.
        """
        return await checks.probe(request.provider, stream=request.stream)


# Codes whose own status is another one than the probe's.
_ELSEWHERE: Final = ("PROVIDER_RATE_LIMITED", "PROVIDER_TIMEOUT", "PROVIDER_UNAVAILABLE")
