"""What the program knows about itself."""

import asyncio
import os
import platform
import re
import shutil
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from host_bridge.protocol import PROTOCOL_VERSION
from sidecar.kernel.catalogue import error_text
from sidecar.kernel.clock import utc_in, utc_now
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.http.security import SecurityGate
from sidecar.kernel.http.tickets import TICKET_PARAMETER, TICKET_SECONDS
from sidecar.kernel.network_settings import Network, read_network, write_network
from sidecar.kernel.settings import Settings
from sidecar.kernel.workers.client import WorkerPool
from sidecar.system.packages import PackageHandles
from sidecar.system.schemas import (
    Capability,
    DirectoryState,
    HostProcess,
    HostStatus,
    NetworkSettings,
    SubsystemHealth,
    SystemHealth,
    SystemInfo,
    Ticket,
)
from sidecar.version import VERSION

OK: Final = SubsystemHealth(status="ok", code=None, message=None)

# What was never set up isn't broken: such a subsystem is unavailable, and the whole is fine.
NOT_SET_UP: Final = frozenset(
    {"VAULT_NOT_OPEN", "LOCAL_MODEL_NOT_INSTALLED", "CAPABILITY_NOT_AVAILABLE"}
)

# All authorities of the world are a quarter of a mebibyte.
_AUTHORITIES_BYTES: Final = 8 * 1024 * 1024

Check = Callable[[], Awaitable[None]]
"""Raises the ProjectError that says what is wrong with a subsystem."""


class Vault(Protocol):
    """The part of the vault that the host's paths need."""

    @property
    def root(self) -> Path | None:
        """The open vault's folder."""
        ...

    async def open(self, path: Path, /) -> None:
        """Make *path* the current vault, or raise ``VAULT_PATH_INVALID``."""
        ...


def degraded(code: str) -> SubsystemHealth:
    """Return the state of a subsystem that lacks something, told by an error code."""
    return SubsystemHealth(status="degraded", code=code, message=error_text(code))


class SystemService:
    """State, health, handles and tickets."""

    def __init__(
        self,
        settings: Settings,
        gate: SecurityGate,
        database: Database,
        workers: WorkerPool,
        vault: Vault,
        *,
        capabilities: Mapping[str, Check],
        health_checks: Mapping[str, Check],
        ticket_paths: Mapping[str, Callable[[str], Awaitable[object]]],
    ) -> None:
        self._settings = settings
        self._gate = gate
        self._database = database
        self._workers = workers
        self._vault = vault
        self._capabilities = capabilities
        self._health_checks = health_checks
        self._ticket_paths = [
            (re.compile(pattern), check) for pattern, check in ticket_paths.items()
        ]
        self._started_at = utc_now()
        self.packages = PackageHandles()

    async def info(self) -> SystemInfo:
        """Return versions, the folders' state and what can be done."""
        paths = self._settings.paths
        folders: dict[str, Path | None] = {
            "data": paths.root,
            "vault": self._vault.root,
            "models": paths.models,
            "runtime": paths.runtime,
            "exports": paths.exports,
            "logs": paths.logs,
        }
        states = await asyncio.to_thread(
            lambda: {name: _directory_state(path) for name, path in folders.items()}
        )
        return SystemInfo(
            version=VERSION,
            protocol=PROTOCOL_VERSION,
            platform=f"{sys.platform}-{platform.machine().lower()}",
            environment=self._settings.environment,
            data_directories=states,
            capabilities={
                name: await _capability(check) for name, check in self._capabilities.items()
            },
        )

    async def health(self) -> SystemHealth:
        """Return how each subsystem is."""
        subsystems = {"database": await self._database_health()}
        for name, check in self._health_checks.items():
            subsystems[name] = await _health(check)
        broken = any(state.status == "degraded" for state in subsystems.values())
        return SystemHealth(status="degraded" if broken else "ok", subsystems=subsystems)

    async def network(self) -> NetworkSettings:
        """Return the proxy and the authorities that are set."""
        network = await self._database.read(read_network)
        return NetworkSettings(proxy=network.proxy, ca_file=network.ca_file)

    async def set_network(self, wanted: NetworkSettings) -> NetworkSettings:
        """Set both; ``VALIDATION_ERROR`` for a file without certificates."""
        network = Network(wanted.proxy, wanted.ca_file)
        if network.ca_file is not None:
            await asyncio.to_thread(_check_authorities, network.ca_file)
        await self._database.write(lambda tx: write_network(tx, network))
        return wanted

    async def _database_health(self) -> SubsystemHealth:
        paths = self._settings.paths
        try:
            await self._database.read(
                lambda conn: conn.execute("SELECT 1 FROM settings").fetchone()
            )
        except sqlite3.Error:
            return degraded("DATABASE_UNAVAILABLE")
        writable = await asyncio.to_thread(
            lambda: all(os.access(path, os.W_OK) for path in (paths.root, paths.database))
        )
        return OK if writable else degraded("DATABASE_UNAVAILABLE")

    def status(self) -> HostStatus:
        """Return what only the host may know."""
        root = self._vault.root
        return HostStatus(
            pid=os.getpid(),
            port=self._gate.port,
            version=VERSION,
            protocol=PROTOCOL_VERSION,
            started_at=self._started_at,
            data_dir=str(self._settings.paths.root),
            vault_path=str(root) if root else None,
            processes=[HostProcess(pid=c.pid, kind=c.kind) for c in self._workers.children()],
        )

    async def open_vault(self, path_text: str) -> str:
        """Make a folder the current vault and return its path. Raises ``VAULT_PATH_INVALID``."""
        path = Path(path_text)
        if "\0" in path_text or not path.is_absolute():
            raise ProjectError("VAULT_PATH_INVALID")
        await self._vault.open(path)
        return str(self._vault.root)

    async def issue_ticket(self, path: str) -> Ticket:
        """Return a ticket for one of the paths that a page's elements load.

        Raises ``VALIDATION_ERROR`` for another path, and the resource's not-found code.
        """
        for pattern, check in self._ticket_paths:
            match = pattern.fullmatch(path)
            if match:
                await check(match[1])
                ticket = self._gate.tickets.issue(path)
                return Ticket(
                    url=f"{self._gate.base_url}{path}?{TICKET_PARAMETER}={ticket}",
                    expires_at=utc_in(TICKET_SECONDS),
                )
        raise ProjectError(
            "VALIDATION_ERROR",
            details={
                "errors": [{"loc": ["body", "path"], "message": "No ticket opens this path."}]
            },
        )


async def _capability(check: Check) -> Capability:
    try:
        await check()
    except ProjectError as error:
        return Capability(available=False, reason=error.code)
    return Capability(available=True, reason=None)


async def _health(check: Check) -> SubsystemHealth:
    try:
        await check()
    except ProjectError as error:
        status = "unavailable" if error.code in NOT_SET_UP else "degraded"
        return SubsystemHealth(status=status, code=error.code, message=error.message())
    except sqlite3.Error:
        return degraded("DATABASE_UNAVAILABLE")
    return OK


def _directory_state(path: Path | None) -> DirectoryState:
    if path is None:
        return DirectoryState(configured=False, exists=False, writable=False, free_bytes=None)
    exists = path.is_dir()
    try:
        free = shutil.disk_usage(path).free if exists else None
    except OSError:
        free = None
    return DirectoryState(
        configured=True,
        exists=exists,
        writable=exists and os.access(path, os.W_OK),
        free_bytes=free,
    )


def _check_authorities(path: str) -> None:
    problem = _problem_of_authorities(path)
    if problem is not None:
        error = {"loc": ["body", "ca_file"], "message": problem}
        raise ProjectError("VALIDATION_ERROR", details={"errors": [error]})


def _problem_of_authorities(path: str) -> str | None:
    import ssl  # noqa: PLC0415 - not needed to start

    file = Path(path)
    if not file.is_absolute():
        return "Not an absolute path."
    try:
        # A pipe or a device would never end.
        if not file.is_file() or file.stat().st_size > _AUTHORITIES_BYTES:
            return "Not a file with certificate authorities."
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(path)
    except (OSError, ValueError):
        return "Not a readable PEM file with certificate authorities."
    return None if context.get_ca_certs() else "The file holds no certificate authority."
