"""Credentials as a client may see them: by id, configured or not."""

from sidecar.credentials.schemas import CredentialState
from sidecar.kernel.credentials import CredentialStore, check_public_id


class CredentialService:
    """Takes secrets in. Ids of plugins and MCP servers are refused: they have paths of their own.

    Every method raises ``CREDENTIAL_NAMESPACE_RESERVED``, ``RESOURCE_NOT_FOUND`` for an ill-formed
    id, and ``CREDENTIAL_STORE_ERROR``.
    """

    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    async def state(self, credential_id: str) -> CredentialState:
        """Return whether a secret is stored; an id never written has none."""
        check_public_id(credential_id)
        secret = await self._store.get(credential_id)
        return CredentialState(credential_id=credential_id, configured=secret is not None)

    async def put(self, credential_id: str, secret: str) -> CredentialState:
        """Store a secret in place of the one that was there."""
        check_public_id(credential_id)
        await self._store.set(credential_id, secret)
        return CredentialState(credential_id=credential_id, configured=True)

    async def delete(self, credential_id: str) -> None:
        """Remove the secret, if there is one."""
        check_public_id(credential_id)
        await self._store.delete(credential_id)
