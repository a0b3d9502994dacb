"""Local models: listed, downloaded, imported, removed. What other parts of the program call."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog, last_sequence
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.network_settings import read_network
from sidecar.kernel.outbound_http import READ_SECONDS, OutboundHttp
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.local_models import store
from sidecar.local_models.attempts import Attempt, AttemptLog, ModelUse
from sidecar.local_models.catalogue import CatalogueModel
from sidecar.local_models.downloading import FreeSpace, ModelDownload, TransferProgress, free_space
from sidecar.local_models.failures import download_error, import_error, own_model_error
from sidecar.local_models.fetching import RETRY_SECONDS
from sidecar.local_models.finder import LocalModels, SpeechModel
from sidecar.local_models.importing import ModelImport
from sidecar.local_models.library import (
    DOWNLOAD,
    IMPORT,
    InstalledModel,
    InstalledModels,
    Known,
    ModelLibrary,
)
from sidecar.local_models.listing import newest_transfers, shown
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

DOWNLOAD_KIND: Final = "model_download"
IMPORT_KIND: Final = "model_import"
PARALLEL_DOWNLOADS: Final = 2
TOKEN_CREDENTIAL: Final = "provider.huggingface"  # noqa: S105 - the name of a credential, not one
_POLL_SECONDS: Final = 0.2

UsedFolders = Callable[[], Awaitable[Iterable[Path]]]
"""Returns the model folders that somebody uses right now, or waits to use."""


class Packages(Protocol):
    """What the host registered."""

    def resolve(self, package_id: str) -> Path:
        """Return the path behind a handle, or raise ``RESOURCE_NOT_FOUND``."""
        ...


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """How patient transfers are, and who tells them how much room there is."""

    free: FreeSpace = free_space
    read_seconds: float = READ_SECONDS
    retry_seconds: float = RETRY_SECONDS


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
        self.options = options
        self._database = database
        self._jobs = jobs
        self._credentials = credentials
        self._packages = packages
        self._used = tuple(used)
        self._tidying: asyncio.Task[None] | None = None
        common: dict[str, Any] = {
            "id_prefix": "transfer",
            "cancelled_code": "MODEL_DOWNLOAD_CANCELLED",
            "resource_of": _model_of,
        }
        jobs.register(
            JobKind(
                DOWNLOAD_KIND,
                run=self._download,
                failure_code="MODEL_DOWNLOAD_FAILED",
                interrupted_code="MODEL_DOWNLOAD_FAILED",
                concurrency=PARALLEL_DOWNLOADS,
                **common,
            )
        )
        jobs.register(
            JobKind(IMPORT_KIND, run=self._import, failure_code="INTERNAL_ERROR", **common)
        )

    def prepare(self) -> None:
        """Delete what cut-off work of an earlier run left; before jobs are started. Blocking."""
        self.library.tidy(at_start=True)

    async def close(self) -> None:
        """Wait for what is being deleted."""
        if self._tidying is not None:
            await asyncio.wait([self._tidying], timeout=2)

    # -- reading -------------------------------------------------------------------------------

    async def page(self, query: PageQuery) -> LocalModelListResponse:
        """Return a page of the models. Loads and fetches nothing."""
        transfers = await self._database.read(newest_transfers)
        known = await asyncio.to_thread(self.library.all)
        page = known[query.offset : query.offset + query.limit]
        return LocalModelListResponse(
            items=await self._shown(page, transfers), page=page_of(len(known), query)
        )

    async def get(self, model_id: str) -> LocalModel:
        """Return a model, or raise ``MODEL_NOT_FOUND``."""
        transfers = await self._database.read(newest_transfers)
        return (await self._shown([await self._known(model_id)], transfers))[0]

    async def beginning(self, model_id: str) -> int:
        """Return the sequence before the events of the newest transfer, or raise ``MODEL_NOT_FOUND``."""
        await self._known(model_id)
        transfer = await self._database.read(lambda conn: store.get_transfer(conn, model_id))
        return transfer.beginning if transfer else 0

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
        self, models: Iterable[Known], transfers: Mapping[str, Job]
    ) -> list[LocalModel]:
        """*transfers* are older than *models*: a transfer that is over has put its model in place."""
        used = await self._folders_in_use()
        return [shown(known, transfers.get(known.model_id), used) for known in models]

    async def _folders_in_use(self) -> set[Path]:
        return {folder for find in self._used for folder in await find()}

    # -- asking for transfers ------------------------------------------------------------------

    async def download(self, model_id: str) -> LocalModel:
        """Queue a download, join the one that runs, or do nothing for a model that is whole.

        Raises ``MODEL_NOT_FOUND``, or ``MODEL_IN_USE`` while the model is being imported.
        """
        known = await self._known(model_id)
        if known.folder is None or known.damaged:
            await self._database.write(lambda tx: self._create(tx, DOWNLOAD_KIND, model_id, {}))
        return await self.get(model_id)

    async def import_package(
        self, model_id: str, package_id: str, *, link: bool = False
    ) -> LocalModel:
        """Queue an import of a folder or archive that the host registered; *link* leaves files in place.

        Raises ``MODEL_NOT_FOUND``, ``RESOURCE_NOT_FOUND`` for the handle, or ``MODEL_IN_USE`` while
        the model is used or another transfer runs.
        """
        known = await self._known(model_id)
        source = self._packages.resolve(package_id)
        if known.entry is None:
            raise ProjectError("MODEL_NOT_FOUND")
        await self._refuse_use(known)
        request = {"path": str(source), "link": link}
        await self._database.write(lambda tx: self._create(tx, IMPORT_KIND, model_id, request))
        return await self.get(model_id)

    def _create(self, tx: Transaction, kind: str, model_id: str, request: dict[str, Any]) -> None:
        active = _active_job(tx, model_id)
        if active is not None:
            if active.kind == kind == DOWNLOAD_KIND:
                return
            raise ProjectError("MODEL_IN_USE")
        beginning = last_sequence(tx, model_id)
        job = self._jobs.create(tx, kind, {"model_id": model_id, **request}, facet=model_id)
        store.put_transfer(tx, store.Transfer(model_id, job.job_id, kind, beginning))

    async def cancel(self, model_id: str) -> None:
        """Ask for the end of the model's transfer.

        Raises ``MODEL_NOT_FOUND`` or ``DOWNLOAD_NOT_ACTIVE``.
        """
        await self._known(model_id)
        active = await self._database.read(lambda conn: _active_job(conn, model_id))
        if active is None:
            raise ProjectError("DOWNLOAD_NOT_ACTIVE")
        try:
            await self._jobs.cancel(active.kind, active.job_id)
        except ProjectError as error:
            if error.code != "JOB_ALREADY_FINISHED":
                raise
            raise ProjectError("DOWNLOAD_NOT_ACTIVE") from error

    async def verify(self, model_id: str) -> LocalModel:
        """Read an installed model whole and return it: ``damaged`` if a file isn't what was installed.

        Raises ``MODEL_NOT_FOUND``, ``LOCAL_MODEL_NOT_INSTALLED``, or ``MODEL_IN_USE`` while it is
        being downloaded or imported.
        """
        known = await self._known(model_id)
        await self._refuse_transfer(model_id)
        if known.folder is None:
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")
        await asyncio.to_thread(self.library.verify, known)
        return await self.get(model_id)

    async def delete(self, model_id: str) -> None:
        """Remove a model from the managed folder, or what an unfinished download left of it.

        Raises ``MODEL_NOT_FOUND``, ``MODEL_IN_USE`` or ``LOCAL_MODEL_NOT_INSTALLED``; the last also
        for a model that lies in another folder, which isn't ours to remove.
        """
        known = await self._known(model_id)
        await self._refuse_transfer(model_id)
        await self._refuse_use(known)
        removed = False
        if known.folder is None:
            removed = await asyncio.to_thread(self.library.discard_partial, model_id)
        elif known.removable:
            removed = await asyncio.to_thread(self.library.remove, model_id)
        if not removed:
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")

    async def _refuse_transfer(self, model_id: str) -> None:
        active = await self._database.read(lambda conn: _active_job(conn, model_id))
        if active is not None:
            raise ProjectError("MODEL_IN_USE")

    async def _refuse_use(self, known: Known) -> None:
        if known.folder is not None and known.folder in await self._folders_in_use():
            raise ProjectError("MODEL_IN_USE")

    # -- running transfers ---------------------------------------------------------------------

    async def _download(self, ctx: JobContext) -> JobOutcome:
        model_id = _model_of(ctx.job)
        known = await self._known(model_id)
        model = known.entry
        if model is None:
            raise own_model_error()
        if known.folder is not None and not known.damaged:
            # The process died between the model's taking its place and the job's end.
            return JobOutcome({})
        staging = self.library.staging(model_id, DOWNLOAD)
        network = await self._database.read(read_network)
        http = OutboundHttp(network, read_seconds=self.options.read_seconds)
        token = await self._token(model)
        try:
            download = ModelDownload(
                model,
                staging,
                http,
                token=token,
                free=self.options.free,
                retry_seconds=self.options.retry_seconds,
            )
            count = await download.run(ctx)
        except ProjectError as error:
            raise download_error(error, model, token) from error
        finally:
            await http.close()
        return self._outcome(model_id, staging, count)

    async def _token(self, model: CatalogueModel) -> str | None:
        return await self._credentials.get(TOKEN_CREDENTIAL) if model.gated else None

    async def _import(self, ctx: JobContext) -> JobOutcome:
        model_id = _model_of(ctx.job)
        model = (await self._known(model_id)).entry
        if model is None:
            raise ProjectError("MODEL_NOT_FOUND")
        staging = self.library.staging(model_id, IMPORT)
        work = ModelImport(
            model,
            Path(ctx.job.request["path"]),
            staging,
            link=ctx.job.request.get("link", False),
            managed=self.library.managed,
            free=self.options.free,
        )
        running = asyncio.create_task(asyncio.to_thread(work.run))
        try:
            count = await _followed(running, work, TransferProgress(ctx, "importing"))
        except BaseException as error:
            work.cancel.set()
            await asyncio.wait([running])
            # Whatever it ended with by then is of no interest any more.
            running.exception()
            await asyncio.to_thread(self.library.discard, staging)
            if isinstance(error, OSError):
                raise import_error(error) from error
            raise
        return self._outcome(model_id, staging, count)

    def _outcome(self, model_id: str, staging: Path, count: int) -> JobOutcome:
        def place(tx: Transaction) -> None:
            # One rename, where the job becomes completed: a cancel comes before it or not at all.
            self.library.place(staging, model_id)
            tx.after_commit(self._tidy)

        return JobOutcome({"bytes": count}, {"bytes": count}, place)

    def _tidy(self) -> None:
        self._tidying = asyncio.create_task(asyncio.to_thread(self.library.tidy))


async def _followed(
    running: "asyncio.Task[int]", work: ModelImport, progress: TransferProgress
) -> int:
    """Tell how far a blocking import is until it ends, and return what it returns."""
    while True:
        done, _ = await asyncio.wait([running], timeout=_POLL_SECONDS)
        await progress.reach(work.copied, work.total, now=bool(done))
        if done:
            return running.result()


def _model_of(job: Job) -> str:
    return str(job.request["model_id"])


def _active_job(conn: Readable, model_id: str) -> Job | None:
    transfer = store.get_transfer(conn, model_id)
    job = job_store.get(conn, transfer.kind, transfer.job_id) if transfer else None
    return job if job is not None and not job.is_terminal else None
