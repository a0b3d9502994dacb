"""The runtime component: examined at each start, installed when asked for, never otherwise."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cuda_installer import state
from cuda_installer.errors import InstallerError
from cuda_installer.state import Environment, LastInstall
from cuda_installer.uv import find_uv
from sidecar.kernel.catalogue import localise
from sidecar.kernel.database import Database, DatabaseClosedError
from sidecar.kernel.errors import ErrorBody, ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.logging import get_logger
from sidecar.kernel.network_settings import read_network
from sidecar.runtime.disk import OnDisk, read_disk
from sidecar.runtime.failures import environment_error, install_error
from sidecar.runtime.installations import Installations
from sidecar.runtime.installer import run_installer
from sidecar.runtime.schemas import RuntimeComponent, RuntimeStage, RuntimeStatus
from sidecar.runtime.way_out import way_out_for_uv

log = get_logger(__name__)

InferenceInUse = Callable[[], Awaitable[bool]]

# What a killed program's installer may need to notice that it is alone.
LEFTOVER_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found out by running code in an environment; good for one stamp."""

    stamp: tuple[object, ...]
    torch: str | None = None
    cuda_available: bool = False
    failed_step: str | None = None


@dataclass(frozen=True, slots=True)
class RuntimePython:
    """An interpreter that was seen working. ``custom`` is one of the user's, never written to."""

    path: Path
    custom: bool
    cuda_available: bool


class RuntimeService:
    """Knows, installs and hands out the managed runtime."""

    def __init__(
        self, database: Database, events: EventLog, root: Path, inference_in_use: InferenceInUse
    ) -> None:
        """*inference_in_use* tells whether a local inference runs or is queued."""
        self.installations = Installations(database, events)
        self._database = database
        self._root = root
        self._inference_in_use = inference_in_use
        self._examined: Examined | None = None
        self._examination: asyncio.Task[None] | None = None
        self._installation: asyncio.Task[None] | None = None
        self._stage: RuntimeStage = "preparing"
        self._asked = asyncio.Lock()
        self._started = False
        self._closing = False

    async def start(self) -> None:
        """Examine in the background what is there; nothing is installed."""
        self._examination = asyncio.create_task(self._first_look(), name="runtime-examine")

    async def close(self) -> None:
        """End an examination or an installation with its process tree; the next start tells of it."""
        self._closing = True
        tasks = [task for task in (self._installation, self._examination) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- reading -------------------------------------------------------------------------------

    async def component(self) -> RuntimeComponent:
        """Return how the runtime is, without waiting for anything but a few small files."""
        disk = await asyncio.to_thread(read_disk, self._root)
        self._examine_if_new(disk)
        return self._component(disk)

    async def interpreter(self) -> Path | None:
        """Return the Python that workers can use now; None if there is none that was seen working."""
        disk = await asyncio.to_thread(read_disk, self._root)
        return disk.interpreter(self._root) if self._works(disk) else None

    async def worker_python(self) -> RuntimePython | None:
        """Return the Python that workers can use, once it is known whether it works; None without one."""
        disk = await asyncio.to_thread(read_disk, self._root)
        self._examine_if_new(disk)
        examination = self._examination
        if examination is not None:
            await asyncio.wait({examination})
            disk = await asyncio.to_thread(read_disk, self._root)
        path = disk.interpreter(self._root)
        if path is None or not self._works(disk) or self._examined is None:
            return None
        return RuntimePython(path, disk.custom, self._examined.cuda_available)

    async def check_usable(self) -> None:
        """Raise ``CAPABILITY_NOT_AVAILABLE`` unless the runtime was seen working."""
        if await self.interpreter() is None:
            raise ProjectError("CAPABILITY_NOT_AVAILABLE")

    async def check_cuda(self) -> None:
        """Raise ``CAPABILITY_NOT_AVAILABLE`` unless the runtime was seen computing with CUDA."""
        await self.check_usable()
        if self._examined is None or not self._examined.cuda_available:
            raise ProjectError("CAPABILITY_NOT_AVAILABLE")

    def _works(self, disk: OnDisk) -> bool:
        examined = self._examined
        return (
            disk.anything
            and examined is not None
            and examined.stamp == disk.stamp
            and examined.failed_step is None
        )

    def _component(self, disk: OnDisk) -> RuntimeComponent:
        status, error = self._status(disk)
        known = self._examined if self._works(disk) else None
        cuda_available = known.cuda_available if known is not None else False
        return RuntimeComponent(
            status=status,
            stage=self._stage_now(disk) if status == "installing" else None,
            supported=disk.supported,
            custom_interpreter=disk.custom,
            cuda_available=None if status == "checking" else cuda_available,
            torch=known.torch if known is not None else None,
            error=_body(error),
        )

    def _status(self, disk: OnDisk) -> tuple[RuntimeStatus, ProjectError | None]:
        if self._installation is not None:
            return "installing", None
        if not self._started or self._examination is not None or self._examined is None:
            return "checking", None
        if disk.custom or disk.last is None or disk.last.status == "done":
            return self._status_of_environment(disk, self._examined)
        if disk.last.status == "installing":
            # By somebody at a terminal.
            return "installing", None
        error = install_error(disk.last.reason, disk.last.figures)
        return ("failed" if disk.last.status == "failed" else "interrupted"), error

    def _status_of_environment(
        self, disk: OnDisk, examined: Examined
    ) -> tuple[RuntimeStatus, ProjectError | None]:
        if not disk.anything:
            return "not_installed", None
        if examined.failed_step is not None:
            return "failed", environment_error(examined.failed_step, custom=disk.custom)
        return "installed", None

    def _stage_now(self, disk: OnDisk) -> RuntimeStage:
        if self._installation is None and disk.last is not None and disk.last.stage is not None:
            return _stage(disk.last.stage)
        return self._stage

    # -- examining -----------------------------------------------------------------------------

    async def _first_look(self) -> None:
        try:
            await self._end_earlier_installation()
            disk = await asyncio.to_thread(read_disk, self._root)
            await self._examine(disk)
            self._started = True
        except DatabaseClosedError:
            log.warning("runtime.start_cut_short")
        finally:
            self._examination = None

    def _examine_if_new(self, disk: OnDisk) -> None:
        """Begin to examine what has changed since the last examination."""
        idle = self._examination is None and self._installation is None
        known = self._examined is not None and self._examined.stamp == disk.stamp
        if self._started and idle and not known and not self._closing:
            self._examination = asyncio.create_task(
                self._examine_again(disk), name="runtime-examine"
            )

    async def _examine_again(self, disk: OnDisk) -> None:
        try:
            await self._examine(disk)
        finally:
            self._examination = None

    async def _examine(self, disk: OnDisk) -> None:
        if not disk.anything:
            self._examined = Examined(disk.stamp)
            return
        try:
            said = await run_installer(self._root, "verify")
        except OSError as error:
            log.error("runtime.not_examined", extra={"reason": type(error).__name__})
            said = None
        if said is None or said["event"] != "verified":
            self._examined = Examined(disk.stamp, failed_step="start")
            return
        if not said["works"]:
            log.warning(
                "runtime.does_not_work",
                extra={"step": said["failed_step"], "technical": said["failure"]},
            )
        self._examined = Examined(
            disk.stamp, said["torch"], said["cuda_available"], said["failed_step"]
        )

    async def _end_earlier_installation(self) -> None:
        """Give an installation that an earlier process left its end; it isn't taken up again."""
        since = await self.installations.unfinished_since()
        if since is None:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LEFTOVER_SECONDS
        # Another process's lock has no event to wait for.
        while await asyncio.to_thread(state.is_installing, self._root):
            if loop.time() > deadline:
                break
            await asyncio.sleep(LOOK_SECONDS)
        if await asyncio.to_thread(_settle, self._root, since):
            await self.installations.complete()
        else:
            await self.installations.fail(ProjectError("RUNTIME_INSTALL_INTERRUPTED"))

    # -- installing ----------------------------------------------------------------------------

    async def install(self) -> RuntimeComponent:
        """Start an installation, or join the one that runs, and return how the runtime is then.

        A runtime that is installed and sound is left alone, and so is a user's own interpreter: that
        one is examined anew. Raises ``PLATFORM_UNSUPPORTED``, ``MODEL_IN_USE`` or
        ``UV_NOT_INSTALLED``; then nothing was started.
        """
        async with self._asked:
            component = await self.component()
            if component.status == "installing" or self._closing:
                return component
            disk = await asyncio.to_thread(read_disk, self._root)
            if disk.custom:
                self._examined = None
                self._examine_if_new(disk)
                return self._component(disk)
            if component.status == "installed" and not disk.outdated:
                return component
            if not disk.supported:
                raise ProjectError("PLATFORM_UNSUPPORTED")
            if await self._inference_in_use():
                raise ProjectError("MODEL_IN_USE")
            if await asyncio.to_thread(find_uv, disk.settings) is None:
                raise ProjectError("UV_NOT_INSTALLED")
            await self.installations.begin()
            self._stage = "preparing"
            self._installation = asyncio.create_task(self._install(), name="runtime-install")
            return self._component(disk)

    async def _install(self) -> None:
        try:
            if await self._is_sound_already():
                await self._finish(None)
                return
            network = await self._database.read(read_network)
            way_out = await asyncio.to_thread(way_out_for_uv, network, self._root)
            said = await run_installer(self._root, "install", self._on_stage, way_out)
            await self._take_over(said)
        except DatabaseClosedError:
            log.warning("runtime.installation_cut_short")
        except Exception:
            log.exception("runtime.installation_failed")
            await self._finish(install_error(None))
        finally:
            self._installation = None

    async def _is_sound_already(self) -> bool:
        """Wait for the examination that runs, for it may find that nothing needs to be installed."""
        examination = self._examination
        if examination is None:
            return False
        await asyncio.wait({examination})
        disk = await asyncio.to_thread(read_disk, self._root)
        return self._works(disk) and not disk.outdated and _ended_well(disk.last)

    async def _on_stage(self, stage: str) -> None:
        self._stage = _stage(stage)
        await self.installations.stage(stage)

    async def _take_over(self, said: dict[str, Any] | None) -> None:
        """Make what the installer said last the state of the runtime."""
        if said is None:
            await self._finish(install_error("cancelled"))
        elif said["event"] != "installed":
            await self._finish(install_error(said["reason"], said["figures"]))
        else:
            # It was verified by the installer, in this very environment.
            disk = await asyncio.to_thread(read_disk, self._root)
            made = said["environment"]
            self._examined = Examined(disk.stamp, made["torch"], made["cuda_available"])
            await self._finish(None)

    async def _finish(self, error: ProjectError | None) -> None:
        # Whoever reads the last event finds the state that it tells of.
        self._installation = None
        if error is None:
            await self.installations.complete()
        else:
            await self.installations.fail(error)


def _settle(root: Path, since: str) -> bool:
    """Whether the installation that began at *since* was done before its server died.

    If it wasn't, the state on disk says that it was interrupted from now on.
    """
    current = state.read_current(root)
    if current is not None and _is_later(current, since):
        return True
    last = state.read_last(root)
    if last is None or last.status != "failed":
        interrupted = LastInstall("interrupted", None, "cancelled", last.flavour if last else None)
        try:
            with state.installation_lock(root):
                state.write_last(root, interrupted)
        except InstallerError:
            # Somebody at a terminal installs by now; what comes of that is the state.
            log.info("runtime.installed_elsewhere")
    return False


def _is_later(environment: Environment, moment: str) -> bool:
    """Compare to the second, which is all that an environment knows."""
    return environment.installed_at[:19] >= moment[:19]


def _ended_well(last: LastInstall | None) -> bool:
    return last is None or last.status == "done"


def _stage(name: str) -> RuntimeStage:
    stages: dict[str, RuntimeStage] = {
        "preparing": "preparing",
        "creating_environment": "creating_environment",
        "resolving": "resolving",
        "downloading": "downloading",
        "installing": "installing",
        "verifying": "verifying",
        "finishing": "finishing",
    }
    return stages[name]


def _body(error: ProjectError | None) -> ErrorBody | None:
    if error is None:
        return None
    return ErrorBody(code=error.code, message=error.message(), details=localise(error.details))
