"""Paths of credentials."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Response

from sidecar.credentials.schemas import CredentialSecret, CredentialState
from sidecar.credentials.service import CredentialService
from sidecar.kernel.errors import error_responses

_ERRORS: Final = error_responses(
    "CREDENTIAL_NAMESPACE_RESERVED", "RESOURCE_NOT_FOUND", "CREDENTIAL_STORE_ERROR"
)
CredentialId = Annotated[
    str,
    Path(
        description="1 to 200 letters, digits, dots, hyphens and underscores, for example "
        "`provider.openai`. `plugin.*` and `mcp.*` belong to plugins and MCP servers."
    ),
]


def build_router(service: CredentialService) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/api/credentials", tags=["credentials"])

    @router.get("/{credential_id}", summary="Is a credential configured?", responses=_ERRORS)
    async def get_credential(credential_id: CredentialId) -> CredentialState:
        """Whether a secret is stored under the id; an id never written gives `configured: false`."""
        return await service.state(credential_id)

    @router.put("/{credential_id}", summary="Store a secret", responses=_ERRORS)
    async def put_credential(
        credential_id: CredentialId, request: CredentialSecret
    ) -> CredentialState:
        """Stored in the system's keyring or encrypted in a file. No path gives it back.

        It takes the place of the one that was there; the next call of a provider uses it.
        """
        return await service.put(credential_id, request.secret)

    @router.delete(
        "/{credential_id}", status_code=204, summary="Remove a secret", responses=_ERRORS
    )
    async def delete_credential(credential_id: CredentialId) -> Response:
        """Answers 204 whether or not there was one."""
        await service.delete(credential_id)
        return Response(status_code=204)

    return router
