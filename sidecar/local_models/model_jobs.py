"""What is done with models in the background: downloads, imports and verifications.

A model has one of them at a time, and its newest one of each kind is remembered.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database, Readable, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import last_sequence
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.network_settings import read_network
from sidecar.kernel.outbound_http import READ_SECONDS, OutboundHttp
from sidecar.local_models import store
from sidecar.local_models.blocking_work import followed
from sidecar.local_models.catalogue import CatalogueModel
from sidecar.local_models.downloading import FreeSpace, ModelDownload, TransferProgress, free_space
from sidecar.local_models.failures import download_error, import_error, own_model_error
from sidecar.local_models.fetching import RETRY_SECONDS
from sidecar.local_models.importing import ModelImport
from sidecar.local_models.library import DOWNLOAD, IMPORT, Known, ModelLibrary

DOWNLOAD_KIND: Final = "model_download"
IMPORT_KIND: Final = "model_import"
VERIFICATION_KIND: Final = "model_verification"
PARALLEL_DOWNLOADS: Final = 2
TOKEN_CREDENTIAL: Final = "provider.huggingface"  # noqa: S105 - the name of a credential, not one
# Asked for again, these join the one that waits or runs.
_JOINED: Final = frozenset({DOWNLOAD_KIND, VERIFICATION_KIND})


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """How patient transfers are, and who tells them how much room there is."""

    free: FreeSpace = free_space
    read_seconds: float = READ_SECONDS
    retry_seconds: float = RETRY_SECONDS


class ModelJobs:
    """Starts, cancels and does them."""

    def __init__(
        self,
        database: Database,
        jobs: JobEngine,
        credentials: CredentialStore,
        library: ModelLibrary,
        options: TransferOptions,
    ) -> None:
        self.options = options
        self._database = database
        self._jobs = jobs
        self._credentials = credentials
        self._library = library
        self._tidying: asyncio.Task[None] | None = None
        common: dict[str, Any] = {"id_prefix": "transfer", "resource_of": _model_of}
        transfer: dict[str, Any] = {"cancelled_code": "MODEL_DOWNLOAD_CANCELLED", **common}
        jobs.register(
            JobKind(
                DOWNLOAD_KIND,
                run=self._download,
                failure_code="MODEL_DOWNLOAD_FAILED",
                interrupted_code="MODEL_DOWNLOAD_FAILED",
                concurrency=PARALLEL_DOWNLOADS,
                **transfer,
            )
        )
        jobs.register(
            JobKind(IMPORT_KIND, run=self._import, failure_code="INTERNAL_ERROR", **transfer)
        )
        jobs.register(
            JobKind(
                VERIFICATION_KIND,
                run=self._verify,
                failure_code="INTERNAL_ERROR",
                cancelled_code="JOB_CANCELLED",
                **common,
            )
        )

    async def close(self) -> None:
        """Wait for what is being deleted."""
        if self._tidying is not None:
            await asyncio.wait([self._tidying], timeout=2)

    async def begin(self, kind: str, model_id: str, request: dict[str, Any] | None = None) -> None:
        """Queue a job of *kind*, or join an equal one; ``MODEL_IN_USE`` while another waits or runs."""

        def create(tx: Transaction) -> None:
            active = _active_job(tx, model_id)
            if active is not None:
                if active.kind == kind and kind in _JOINED:
                    return
                raise ProjectError("MODEL_IN_USE")
            beginning = last_sequence(tx, model_id)
            whole = {"model_id": model_id, **(request or {})}
            job = self._jobs.create(tx, kind, whole, facet=model_id)
            store.put_job(tx, store.ModelJob(model_id, kind, job.job_id, beginning))

        await self._database.write(create)

    async def active(self, model_id: str) -> Job | None:
        """Return the job of a model that waits or runs, None if there is none."""
        return await self._database.read(lambda conn: _active_job(conn, model_id))

    async def cancel(self, model_id: str) -> None:
        """Ask for the end of the model's job; ``DOWNLOAD_NOT_ACTIVE`` if there is none."""
        active = await self.active(model_id)
        if active is None:
            raise ProjectError("DOWNLOAD_NOT_ACTIVE")
        try:
            await self._jobs.cancel(active.kind, active.job_id)
        except ProjectError as error:
            if error.code != "JOB_ALREADY_FINISHED":
                raise
            raise ProjectError("DOWNLOAD_NOT_ACTIVE") from error

    # -- what the jobs do ----------------------------------------------------------------------

    async def _known(self, ctx: JobContext) -> Known:
        known = await asyncio.to_thread(self._library.get, _model_of(ctx.job))
        if known is None:
            raise ProjectError("MODEL_NOT_FOUND")
        return known

    async def _download(self, ctx: JobContext) -> JobOutcome:
        known = await self._known(ctx)
        model = known.entry
        if model is None:
            raise own_model_error()
        if known.folder is not None and not known.damaged:
            # The process died between the model's taking its place and the job's end.
            return JobOutcome({})
        staging = self._library.staging(known.model_id, DOWNLOAD)
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
        return self._placed(known.model_id, staging, count)

    async def _token(self, model: CatalogueModel) -> str | None:
        return await self._credentials.get(TOKEN_CREDENTIAL) if model.gated else None

    async def _import(self, ctx: JobContext) -> JobOutcome:
        model = (await self._known(ctx)).entry
        if model is None:
            raise ProjectError("MODEL_NOT_FOUND")
        staging = self._library.staging(model.model_id, IMPORT)
        work = ModelImport(
            model,
            Path(ctx.job.request["path"]),
            staging,
            link=ctx.job.request.get("link", False),
            managed=self._library.managed,
            free=self.options.free,
        )
        try:
            await followed(work, TransferProgress(ctx, "importing"))
        except BaseException as error:
            await asyncio.to_thread(self._library.discard, staging)
            if isinstance(error, OSError):
                raise import_error(error) from error
            raise
        return self._placed(model.model_id, staging, work.bytes_done)

    def _placed(self, model_id: str, staging: Path, count: int) -> JobOutcome:
        def place(tx: Transaction) -> None:
            # One rename, where the job becomes completed: a cancel comes before it or not at all.
            self._library.place(staging, model_id)
            tx.after_commit(self._tidy)

        return JobOutcome({"bytes": count}, {"bytes": count}, place)

    def _tidy(self) -> None:
        self._tidying = asyncio.create_task(asyncio.to_thread(self._library.tidy))

    async def _verify(self, ctx: JobContext) -> JobOutcome:
        known = await self._known(ctx)
        if known.folder is None:
            # Somebody else removed it while this waited.
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")
        work = self._library.verification(known, known.folder)
        await followed(work, TransferProgress(ctx, "verifying"))
        found = {"bytes": work.bytes_done, "damaged": (await self._known(ctx)).damaged}
        return JobOutcome(found, found)


def _model_of(job: Job) -> str:
    return str(job.request["model_id"])


def _active_job(conn: Readable, model_id: str) -> Job | None:
    newest = store.newest_job(conn, model_id)
    job = job_store.get(conn, newest.kind, newest.job_id) if newest else None
    return job if job is not None and not job.is_terminal else None
