"""Local models: listed, downloaded, imported, removed. What other parts of the program call."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.jobs.engine import JobEngine
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.local_models import store
from sidecar.local_models.attempts import Attempt, AttemptLog, ModelUse
from sidecar.local_models.finder import LocalModels, SpeechModel
from sidecar.local_models.library import InstalledModel, InstalledModels, Known, ModelLibrary
from sidecar.local_models.listing import NO_JOBS, NewestJobs, newest_jobs, shown
from sidecar.local_models.model_jobs import (
    DOWNLOAD_KIND,
    IMPORT_KIND,
    VERIFICATION_KIND,
    ModelJobs,
    TransferOptions,
)
from sidecar.local_models.schemas import DiagnosticsResponse, LocalModel, LocalModelListResponse

__all__ = [
    "Attempt",
    "AttemptLog",
    "InstalledModel",
    "InstalledModels",
    "LocalModelService",
    "LocalModels",
    "ModelLibrary",
    "ModelUse",
    "SpeechModel",
    "TransferOptions",
]

UsedFolders = Callable[[], Awaitable[Iterable[Path]]]
"""Returns the model folders that somebody uses right now, or waits to use."""


class Packages(Protocol):
    """What the host registered."""

    def resolve(self, package_id: str) -> Path:
        """Return the path behind a handle, or raise ``RESOURCE_NOT_FOUND``."""
        ...


DEFAULT_OPTIONS: Final = TransferOptions()


class LocalModelService:
    """The models of the catalogue and of this computer."""

    def __init__(
        self,
        database: Database,
        events: EventLog,
        jobs: JobEngine,
        credentials: CredentialStore,
        packages: Packages,
        library: ModelLibrary,
        *,
        used: Iterable[UsedFolders] = (),
        options: TransferOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.events = events
        self.attempts = AttemptLog(database)
        self.library = library
        self.jobs = ModelJobs(database, jobs, credentials, library, options)
        self._database = database
        self._packages = packages
        self._used = tuple(used)

    def prepare(self) -> None:
        """Delete what cut-off work of an earlier run left; before jobs are started. Blocking."""
        self.library.tidy(at_start=True)

    async def close(self) -> None:
        """Wait for what is being deleted."""
        await self.jobs.close()

    # -- reading -------------------------------------------------------------------------------

    async def page(self, query: PageQuery) -> LocalModelListResponse:
        """Return a page of the models. Loads and fetches nothing."""
        jobs = await self._database.read(newest_jobs)
        known = await asyncio.to_thread(self.library.all)
        page = known[query.offset : query.offset + query.limit]
        return LocalModelListResponse(
            items=await self._shown(page, jobs), page=page_of(len(known), query)
        )

    async def get(self, model_id: str) -> LocalModel:
        """Return a model, or raise ``MODEL_NOT_FOUND``."""
        jobs = await self._database.read(newest_jobs)
        return (await self._shown([await self._known(model_id)], jobs))[0]

    async def beginning(self, model_id: str) -> int:
        """Return the sequence before the events of the newest job, or raise ``MODEL_NOT_FOUND``."""
        await self._known(model_id)
        newest = await self._database.read(lambda conn: store.newest_job(conn, model_id))
        return newest.beginning if newest else 0

    async def diagnostics(self) -> DiagnosticsResponse:
        """Return the newest attempts to use local models."""
        return await self.attempts.page()

    async def is_usable(self, folder: Path) -> bool:
        """Whether nothing in a model's folder has changed since it was installed."""
        return await asyncio.to_thread(self.library.is_usable, folder)

    async def _known(self, model_id: str) -> Known:
        known = await asyncio.to_thread(self.library.get, model_id)
        if known is None:
            raise ProjectError("MODEL_NOT_FOUND")
        return known

    async def _shown(
        self, models: Iterable[Known], jobs: Mapping[str, NewestJobs]
    ) -> list[LocalModel]:
        """*jobs* are older than *models*: a transfer that is over has put its model in place."""
        used = await self._folders_in_use()
        return [shown(known, jobs.get(known.model_id, NO_JOBS), used) for known in models]

    async def _folders_in_use(self) -> set[Path]:
        return {folder for find in self._used for folder in await find()}

    # -- asking for work -----------------------------------------------------------------------

    async def download(self, model_id: str) -> LocalModel:
        """Queue a download, join the one that runs, or do nothing for a model that is whole.

        Raises ``MODEL_NOT_FOUND``, or ``MODEL_IN_USE`` while the model is being imported or verified.
        """
        known = await self._known(model_id)
        if known.folder is None or known.damaged:
            await self.jobs.begin(DOWNLOAD_KIND, model_id)
        return await self.get(model_id)

    async def import_package(
        self, model_id: str, package_id: str, *, link: bool = False
    ) -> LocalModel:
        """Queue an import of a folder or archive that the host registered; *link* leaves files in place.

        Raises ``MODEL_NOT_FOUND``, ``RESOURCE_NOT_FOUND`` for the handle, or ``MODEL_IN_USE`` while
        the model is used, fetched or verified.
        """
        known = await self._known(model_id)
        source = self._packages.resolve(package_id)
        if known.entry is None:
            raise ProjectError("MODEL_NOT_FOUND")
        await self._refuse_use(known)
        request = {"path": str(source), "link": link}
        await self.jobs.begin(IMPORT_KIND, model_id, request)
        return await self.get(model_id)

    async def cancel(self, model_id: str) -> None:
        """Ask for the end of what is done with the model.

        Raises ``MODEL_NOT_FOUND`` or ``DOWNLOAD_NOT_ACTIVE``.
        """
        await self._known(model_id)
        await self.jobs.cancel(model_id)

    async def verify(self, model_id: str) -> LocalModel:
        """Queue the reading of an installed model, which finds it ``damaged`` if a file isn't what it was.

        Joins one that waits or runs. Raises ``MODEL_NOT_FOUND``, ``LOCAL_MODEL_NOT_INSTALLED``, or
        ``MODEL_IN_USE`` while the model is being downloaded or imported.
        """
        if (await self._known(model_id)).folder is None:
            await self._refuse_job(model_id)
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")
        await self.jobs.begin(VERIFICATION_KIND, model_id)
        return await self.get(model_id)

    async def delete(self, model_id: str) -> None:
        """Remove a model from the managed folder, or what an unfinished download left of it.

        Raises ``MODEL_NOT_FOUND``, ``MODEL_IN_USE`` or ``LOCAL_MODEL_NOT_INSTALLED``; the last also
        for a model that lies in another folder, which isn't ours to remove.
        """
        known = await self._known(model_id)
        await self._refuse_job(model_id)
        await self._refuse_use(known)
        removed = False
        if known.folder is None:
            removed = await asyncio.to_thread(self.library.discard_partial, model_id)
        elif known.removable:
            removed = await asyncio.to_thread(self.library.remove, model_id)
        if not removed:
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")

    async def _refuse_job(self, model_id: str) -> None:
        if await self.jobs.active(model_id) is not None:
            raise ProjectError("MODEL_IN_USE")

    async def _refuse_use(self, known: Known) -> None:
        if known.folder is not None and known.folder in await self._folders_in_use():
            raise ProjectError("MODEL_IN_USE")
