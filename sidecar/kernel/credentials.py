"""Secrets of the user: in the system's keyring where there is one, else in an encrypted file.

A keyring can be chosen by the system and still fail, or wait for a prompt, so it is tried once with
a value of our own under a time limit. The file is encrypted with Fernet (AES-128-CBC and HMAC);
its key lies beside it, readable by the user alone: it protects against a copied database or a
synced folder, not against somebody who can read the user's files.
"""

import asyncio
import json
import os
import re
import secrets
import threading
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.kernel.redaction import redactor

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

log = get_logger(__name__)

SERVICE: Final = "NotesAgent Sidecar"
RESERVED_NAMESPACES: Final = ("plugin.", "mcp.")
PROBE_SECONDS: Final = 3.0
_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")

Backend = Literal["keyring", "file"]


def check_public_id(credential_id: str) -> None:
    """Refuse ids that a client must not name: ill-formed ones and those of reserved namespaces.

    Raises ``CREDENTIAL_NAMESPACE_RESERVED``, also for an id that only reads like a reserved one, or
    ``RESOURCE_NOT_FOUND``.
    """
    if _as_read(credential_id).startswith(RESERVED_NAMESPACES):
        raise ProjectError("CREDENTIAL_NAMESPACE_RESERVED")
    if not _ID_PATTERN.fullmatch(credential_id):
        raise ProjectError("RESOURCE_NOT_FOUND")


def _as_read(credential_id: str) -> str:
    """Return the id without what hides its namespace: case, encoding, look-alikes, blanks, invisible marks."""
    decoded = credential_id
    while (once := unquote(decoded)) != decoded:
        decoded = once
    plain = unicodedata.normalize("NFKC", decoded)
    return "".join(c for c in plain if unicodedata.category(c)[0] not in "CZ").casefold()


class CredentialStore:
    """Keeps secrets under ids; chooses its backend at first use."""

    def __init__(self, folder: Path) -> None:
        self._file = _EncryptedFile(folder)
        self._backend: Backend | None = None
        self._gate = threading.Lock()

    async def get(self, credential_id: str) -> str | None:
        """Return the secret, None if none is stored."""
        secret = await asyncio.to_thread(self._get, credential_id)
        redactor.register(secret)
        return secret

    async def set(self, credential_id: str, secret: str) -> None:
        """Store the secret. Raises ``CREDENTIAL_STORE_ERROR``."""
        redactor.register(secret)
        await asyncio.to_thread(self._set, credential_id, secret)

    async def delete(self, credential_id: str) -> bool:
        """Remove the secret; False if none was stored."""
        return await asyncio.to_thread(self._delete, credential_id)

    def backend(self) -> Backend:
        """Return which backend is in use, probing the keyring the first time (blocking)."""
        with self._gate:
            if self._backend is None:
                self._backend = "keyring" if _keyring_works() else "file"
            return self._backend

    def _get(self, credential_id: str) -> str | None:
        if self.backend() == "keyring":
            found = _keyring_call("get_password", credential_id)
            if found is not None:
                return str(found)
        return self._file.read().get(credential_id)

    def _set(self, credential_id: str, secret: str) -> None:
        if self.backend() == "keyring":
            _keyring_call("set_password", credential_id, secret)
            return
        with self._gate:
            self._file.write(self._file.read() | {credential_id: secret})

    def _delete(self, credential_id: str) -> bool:
        found = False
        if self.backend() == "keyring" and _keyring_call("get_password", credential_id) is not None:
            _keyring_call("delete_password", credential_id)
            found = True
        with self._gate:
            kept = self._file.read()
            if kept.pop(credential_id, None) is not None:
                self._file.write(kept)
                found = True
        return found


class _EncryptedFile:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "credentials.bin"
        self._key_path = folder / "key"

    def read(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - not needed before ready

        try:
            content: dict[str, str] = json.loads(self._fernet().decrypt(self._path.read_bytes()))
        except (InvalidToken, OSError, ValueError) as error:
            log.error("credentials.unreadable", extra={"reason": type(error).__name__})
            raise ProjectError("CREDENTIAL_STORE_ERROR") from error
        return content

    def write(self, content: dict[str, str]) -> None:
        try:
            _write_private(self._path, self._fernet().encrypt(json.dumps(content).encode()))
        except OSError as error:
            raise ProjectError("CREDENTIAL_STORE_ERROR") from error

    def _fernet(self) -> "Fernet":
        from cryptography.fernet import Fernet  # noqa: PLC0415

        if not self._key_path.exists():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_private(self._key_path, Fernet.generate_key())
        return Fernet(self._key_path.read_bytes())


def _write_private(path: Path, content: bytes) -> None:
    """Replace a file that the user alone may read, whole or not at all."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _keyring_call(method: str, *arguments: str) -> Any:
    import keyring  # noqa: PLC0415 - not needed before ready
    from keyring.errors import KeyringError  # noqa: PLC0415

    try:
        return getattr(keyring, method)(SERVICE, *arguments)
    except KeyringError as error:
        log.error("credentials.keyring_failed", extra={"reason": type(error).__name__})
        raise ProjectError("CREDENTIAL_STORE_ERROR") from error


def _keyring_works() -> bool:
    """Whether a secret can be written, read back and removed within the time limit."""
    worked = threading.Event()

    def probe() -> None:
        import keyring  # noqa: PLC0415

        name, value = f"probe.{secrets.token_hex(8)}", secrets.token_hex(8)
        try:
            keyring.set_password(SERVICE, name, value)
            same = keyring.get_password(SERVICE, name) == value
            keyring.delete_password(SERVICE, name)
        except Exception as error:  # noqa: BLE001 - backends raise whatever their system does
            log.info("credentials.no_keyring", extra={"reason": type(error).__name__})
            return
        if same:
            worked.set()

    thread = threading.Thread(target=probe, name="keyring-probe", daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    return worked.is_set()
