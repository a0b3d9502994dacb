"""Handles for files that the host's user chose: a webview names the handle, never the path."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.kernel.clock import utc_in
from sidecar.kernel.errors import ProjectError

PACKAGE_SECONDS: Final = 1800
_MAXIMUM: Final = 1000


@dataclass(frozen=True, slots=True)
class _Package:
    path: Path
    expires: float


class PackageHandles:
    """The handles of this process; they end with it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._packages: dict[str, _Package] = {}

    def create(self, path_text: str) -> tuple[str, str]:
        """Return (package_id, expires_at) for an existing file or folder.

        Raises ``PACKAGE_PATH_INVALID`` for a relative or missing path.
        """
        path = Path(path_text)
        if "\0" in path_text or not path.is_absolute() or not path.exists():
            raise ProjectError("PACKAGE_PATH_INVALID")
        now = self._clock()
        self._packages = {name: kept for name, kept in self._packages.items() if kept.expires > now}
        while len(self._packages) >= _MAXIMUM:
            del self._packages[next(iter(self._packages))]
        package_id = f"package_{secrets.token_urlsafe(24)}"
        self._packages[package_id] = _Package(path, now + PACKAGE_SECONDS)
        return package_id, utc_in(PACKAGE_SECONDS)

    def resolve(self, package_id: str) -> Path:
        """Return the path behind a handle, or raise ``RESOURCE_NOT_FOUND``."""
        package = self._packages.get(package_id)
        if package is None or package.expires <= self._clock():
            raise ProjectError("RESOURCE_NOT_FOUND")
        return package.path
