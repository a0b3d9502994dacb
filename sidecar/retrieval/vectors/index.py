"""The vectors of the open vault's blocks: which set serves, keeping it whole, building it anew."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.database import Database, DatabaseClosedError, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.retrieval.embedding import Embedder, ModelSource, Source, VectorSpace
from sidecar.retrieval.vectors import store as vector_store
from sidecar.retrieval.vectors.sets import VectorSets
from sidecar.retrieval.vectors.store import VectorSet
from sidecar.vault.service import VaultService

log = get_logger(__name__)

# Blocks of one edit come in one transaction; those of the next may follow at once.
SETTLE_SECONDS: Final = 0.05
RETRY_SECONDS: Final = 30.0

Report = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class VectorState:
    """What a client is told of the vectors."""

    embedding: VectorSpace | None
    stored: VectorSpace | None
    pending_blocks: int
    working: bool
    """Whether blocks are being embedded at this moment."""


class VectorIndex:
    """Keeps the vectors of the open vault in step with its blocks."""

    def __init__(
        self, database: Database, vault: VaultService, models: ModelSource, sets: VectorSets
    ) -> None:
        self._database = database
        self._vault = vault
        self._models = models
        self._sets = sets
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._working = False
        self._stalled = False

    # -- following the blocks ------------------------------------------------------------------

    def start(self) -> None:
        """Begin to follow, in the background."""
        self._task = asyncio.create_task(self._follow(), name="vectors-follow")
        self._wake.set()

    async def close(self) -> None:
        """Stop following; what isn't embedded yet waits for the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._sets.close()

    def blocks_changed(self) -> None:
        """Have the blocks that are new embedded soon."""
        self._stalled = False
        self._wake.set()

    async def _follow(self) -> None:
        await self._sets.remove_strangers()
        while True:
            try:
                async with asyncio.timeout(RETRY_SECONDS if self._stalled else None):
                    await self._wake.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(SETTLE_SECONDS)
            self._wake.clear()
            self._stalled = False
            try:
                for embedder in (await self._models.local(), await self._models.remote()):
                    if embedder is not None:
                        await self._catch_up(embedder)
            except ProjectError as error:
                self._give_up_for_now()
                log.warning("vectors.stalled", extra={"code": error.code})
            except DatabaseClosedError:
                return
            except Exception:
                self._give_up_for_now()
                log.exception("vectors.follow_failed")
            finally:
                self._working = False

    def _give_up_for_now(self) -> None:
        # Blocks that came meanwhile are looked at at once, and may be embedded.
        self._stalled = not self._wake.is_set()

    async def _catch_up(self, embedder: Embedder) -> None:
        made = await self.serving_set(embedder.space.source)
        if made is None or made.space != embedder.space:
            return
        while await self._pending(made):
            self._working = True
            if not await self._sets.fill(made, embedder):
                break
            made = await self.serving_set(embedder.space.source)
            if made is None or made.space != embedder.space:
                return
        await self._sets.drop_gone(made)

    async def _pending(self, made: VectorSet) -> int:
        return await self._database.read(lambda conn: vector_store.count_pending(conn, made))

    # -- what serves ---------------------------------------------------------------------------

    async def serving_set(self, source: Source) -> VectorSet | None:
        """Return the set of the open vault that serves, if there is one."""
        vault_id = self._vault.vault_id
        if vault_id is None:
            return None
        return await self._database.read(lambda conn: vector_store.find_set(conn, vault_id, source))

    async def usable_set(self, embedder: Embedder) -> VectorSet:
        """Return the set that can be compared with the model's vectors.

        Raises ``VECTOR_INDEX_REBUILD_REQUIRED`` or ``INDEX_MODEL_MISMATCH``. A few blocks that are
        still being embedded are no hindrance for a local model; a remote one has to be whole.
        """
        space = embedder.space
        made = await self.serving_set(space.source)
        if made is None:
            raise ProjectError("VECTOR_INDEX_REBUILD_REQUIRED")
        if made.space != space:
            if space.source == "api":
                raise ProjectError("VECTOR_INDEX_REBUILD_REQUIRED")
            raise ProjectError(
                "INDEX_MODEL_MISMATCH",
                details={"embedding": space.describe(), "vector_index": made.space.describe()},
            )
        if (space.source == "api" or self._stalled) and await self._pending(made):
            raise ProjectError("VECTOR_INDEX_REBUILD_REQUIRED")
        return made

    async def state(self) -> VectorState:
        """Return what is in use: the remote model's space if a route is set, else the local one."""
        remote = await self._models.remote()
        local = await self._models.local()
        embedder = remote or local
        source: Source = "api" if remote is not None else "local"
        made = await self.serving_set(source)
        pending = 0
        if made is not None and embedder is not None and made.space == embedder.space:
            pending = await self._pending(made)
        return VectorState(
            embedding=embedder.space if embedder else None,
            stored=made.space if made else None,
            pending_blocks=pending,
            working=self._working or (pending > 0 and not self._stalled),
        )

    # -- building anew -------------------------------------------------------------------------

    async def check_model(self) -> None:
        """Raise ``EMBEDDING_MODEL_UNAVAILABLE`` if there is no model to build with."""
        await self._builder()

    async def _builder(self) -> Embedder:
        embedder = await self._models.remote() or await self._models.local()
        if embedder is None:
            raise ProjectError("EMBEDDING_MODEL_UNAVAILABLE")
        return embedder

    async def rebuild(self, report: Report) -> None:
        """Build all vectors of the open vault; the old ones serve until the new ones are whole.

        Where a route is set its model builds, and then the local one too if it has no index that it
        could step in with. A build of the same space that was broken off by a kill is gone on with.
        """
        embedder = await self._builder()
        failure: ProjectError | None = None
        try:
            await self._build(embedder, report)
        except ProjectError as error:
            failure = error
        local = await self._models.local() if embedder.space.source == "api" else None
        if local is not None:
            made = await self.serving_set("local")
            if made is None or made.space != local.space:
                await self._build(local, report)
        if failure is not None:
            raise failure

    async def _build(self, embedder: Embedder, report: Report) -> None:
        if embedder.space.dimension == 0:
            # The route leaves it to the model, whose first answer tells it.
            await embedder.embed_passages(["dimension"])
        made = await self._begin(self._vault.require_vault_id(), embedder.space)
        try:
            total = await self._pending(made)
            done = 0
            while True:
                filled = await self._sets.fill(made, embedder)
                done += filled
                total = max(total, done)
                await report(done, total)
                if not filled and await self._finish(made):
                    return
        except ProjectError:
            await self._database.write(lambda tx: vector_store.delete_set(tx, made.set_id))
            await self._sets.remove([made.set_id])
            raise

    async def _begin(self, vault_id: str, space: VectorSpace) -> VectorSet:
        def write(tx: Transaction) -> tuple[VectorSet | None, list[int]]:
            over = []
            former = vector_store.find_set(tx, vault_id, space.source, "building")
            while former is not None and former.space != space:
                vector_store.delete_set(tx, former.set_id)
                over.append(former.set_id)
                former = vector_store.find_set(tx, vault_id, space.source, "building")
            if former is None:
                former = vector_store.get_set(tx, vector_store.create_set(tx, vault_id, space))
            return former, over

        made, over = await self._database.write(write)
        assert made is not None
        await self._sets.remove(over)
        return made

    async def _finish(self, made: VectorSet) -> bool:
        """Let the set serve, unless blocks came since; returns whether it does."""

        def write(tx: Transaction) -> list[int] | None:
            current = vector_store.get_set(tx, made.set_id)
            if current is None:
                raise ProjectError("VECTOR_INDEX_REBUILD_REQUIRED")
            if vector_store.count_pending(tx, current):
                return None
            return vector_store.make_ready(tx, current)

        former = await self._database.write(write)
        if former is None:
            return False
        self._stalled = False
        await self._sets.remove(former)
        self._wake.set()
        return True
