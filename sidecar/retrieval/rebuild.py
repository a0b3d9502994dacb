"""The job that builds the index anew, or a part of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.paging import PageQuery
from sidecar.retrieval import store
from sidecar.retrieval.full_text.index import rebuild_text
from sidecar.retrieval.full_text.terms import FORMAT
from sidecar.retrieval.indexer import SearchIndexer
from sidecar.retrieval.schemas import RebuildScope
from sidecar.vault.service import VaultService

REBUILD_JOB: Final = "index_rebuild"
COMPLETED_STATE: Final = "last_completed_at"
ERROR_STATE: Final = "last_error"
# Followers see a rebuild move; the database needn't hear of every batch.
REPORT_SECONDS: Final = 0.25

Report = Callable[[int, int], Awaitable[None]]


class VectorBuilder(Protocol):
    """Builds the vectors of the open vault anew."""

    async def check_model(self) -> None:
        """Raise ``EMBEDDING_MODEL_UNAVAILABLE`` if there is no model to build with."""
        ...

    async def rebuild(self, report: Report) -> None:
        """Build all vectors; the old ones serve until the new ones are whole."""
        ...


@dataclass(slots=True)
class _Pace:
    """Lets through the first report of each interval and the last one."""

    send: Report
    last: float = 0.0

    async def __call__(self, done: int, total: int) -> None:
        now = asyncio.get_running_loop().time()
        if done >= total or now - self.last >= REPORT_SECONDS:
            self.last = now
            await self.send(done, total)


class IndexRebuilds:
    """Starts rebuilds and runs them, one at a time."""

    def __init__(
        self,
        database: Database,
        jobs: JobEngine,
        vault: VaultService,
        indexer: SearchIndexer,
        vectors: VectorBuilder,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._vault = vault
        self._indexer = indexer
        self._vectors = vectors
        self._starting = asyncio.Lock()
        jobs.register(
            JobKind(
                name=REBUILD_JOB,
                id_prefix="index",
                run=self._run,
                failure_code="INTERNAL_ERROR",
                cancelled_code="JOB_CANCELLED",
                on_end=_remember_end,
            )
        )

    async def start(self, scope: RebuildScope) -> str:
        """Start a rebuild and return its job; one of the same scope that isn't done yet stands for it.

        Raises ``VAULT_NOT_OPEN``, and ``EMBEDDING_MODEL_UNAVAILABLE`` for vectors without a model.
        """
        vault_id = self._vault.require_vault_id()
        if scope == "vectors":
            await self._vectors.check_model()
        async with self._starting:
            for job in await self.unfinished():
                if job.request == {"scope": scope, "vault_id": vault_id}:
                    return job.job_id
            request = {"scope": scope, "vault_id": vault_id}
            created = await self._database.write(
                lambda tx: self._jobs.create(tx, REBUILD_JOB, request)
            )
            return created.job_id

    async def start_if_outdated(self) -> None:
        """Build full text anew if another version of the program wrote its words in another way."""
        written, blocks = await self._database.read(
            lambda conn: (store.get_state(conn, store.FORMAT_STATE), store.count_all_blocks(conn))
        )
        if written == FORMAT:
            return
        if blocks == 0:
            await self._database.write(lambda tx: store.put_state(tx, store.FORMAT_STATE, FORMAT))
        elif self._vault.vault_id is not None:
            await self.start("fts")

    async def unfinished(self) -> list[Job]:
        """Return the rebuilds that run or wait, the running one first."""
        page = PageQuery(limit=200, offset=0)
        # In this order a job that begins to run meanwhile is seen twice, and never not at all.
        queued, _ = await self._jobs.list(REBUILD_JOB, page, status="queued")
        running, _ = await self._jobs.list(REBUILD_JOB, page, status="running")
        known = {job.job_id for job in running}
        return [*running, *(job for job in reversed(queued) if job.job_id not in known)]

    async def _run(self, ctx: JobContext) -> JobOutcome:
        scope: RebuildScope = ctx.job.request["scope"]
        if self._vault.vault_id != ctx.job.request["vault_id"]:
            # Another vault was opened since; nobody can search the one that this was asked for.
            raise ProjectError("VAULT_NOT_OPEN")
        if scope in ("all", "fts"):
            await self._rebuild_text(ctx)
        if scope == "vectors" or (scope == "all" and await self._has_model()):
            await self._vectors.rebuild(_reporting(ctx, "embedding"))
        return JobOutcome({"scope": scope})

    async def _has_model(self) -> bool:
        try:
            await self._vectors.check_model()
        except ProjectError:
            return False
        return True

    async def _rebuild_text(self, ctx: JobContext) -> None:
        await ctx.progress("scanning")
        await self._vault.index_again(_reporting(ctx, "scanning"))
        await self._forget_strangers(ctx.job.request["vault_id"])
        await rebuild_text(self._database, _reporting(ctx, "indexing"))

    async def _forget_strangers(self, vault_id: str) -> None:
        """Take notes out of the index that the vault doesn't have."""
        present = await self._vault.note_ids()
        indexed = await self._database.read(lambda conn: store.indexed_note_ids(conn, vault_id))
        for note_id in set(indexed) - present:
            await self._database.write(lambda tx, gone=note_id: self._indexer.forget(tx, gone))  # type: ignore[misc]


def _reporting(ctx: JobContext, phase: str) -> Report:
    async def report(done: int, total: int) -> None:
        await ctx.progress(phase, done, total)

    return _Pace(report)


def _remember_end(tx: Transaction, job: Job) -> None:
    """Keep how the last rebuild ended: the state of the index tells of it after a restart too."""
    if job.status == "completed":
        store.put_state(tx, COMPLETED_STATE, utc_now())
        store.put_state(tx, ERROR_STATE, None)
    elif job.status == "failed" and job.error is not None:
        failure: dict[str, Any] = {"code": job.error.code, "params": job.error.params}
        store.put_state(tx, ERROR_STATE, failure)
