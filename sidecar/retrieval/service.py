"""Search and the state of the index."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sidecar.kernel.catalogue import error_text, localise, text
from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.retrieval import search_store, store
from sidecar.retrieval.embedding import VectorSpace
from sidecar.retrieval.profile import DEFAULT_PROFILE, RetrievalProfile
from sidecar.retrieval.rebuild import COMPLETED_STATE, ERROR_STATE, IndexRebuilds
from sidecar.retrieval.schemas import (
    EmbeddingSpace,
    IndexProgress,
    IndexStatus,
    RebuildAccepted,
    RebuildScope,
    SearchRequest,
    SearchResponse,
    VectorIndexState,
)
from sidecar.retrieval.search import SearchPipeline
from sidecar.retrieval.search_store import Passage, SearchFilter
from sidecar.retrieval.vectors.index import VectorIndex, VectorState
from sidecar.vault.schemas import VaultStatus
from sidecar.vault.service import VaultService, check_folder, compare_key, tag_key

__all__ = ["Passage", "RetrievalService"]

log = get_logger(__name__)


class RetrievalService:
    """Finds blocks of the open vault's notes."""

    def __init__(
        self,
        database: Database,
        vault: VaultService,
        pipeline: SearchPipeline,
        vectors: VectorIndex,
        rebuilds: IndexRebuilds,
        profile: RetrievalProfile = DEFAULT_PROFILE,
    ) -> None:
        self._database = database
        self._vault = vault
        self._pipeline = pipeline
        self._vectors = vectors
        self.rebuilds = rebuilds
        self.profile = profile
        vault.on_scanned(self._scan_completed)

    async def start(self) -> None:
        """Bring the index up to date with this version of the program, in the background."""
        self._vectors.start()
        await self.rebuilds.start_if_outdated()

    async def close(self) -> None:
        """Stop the background work."""
        await self._vectors.close()

    def models_changed(self) -> None:
        """Have the vectors of a model completed that is chosen from now on."""
        self._vectors.blocks_changed()

    # -- search --------------------------------------------------------------------------------

    async def search(
        self, request: SearchRequest, profile: RetrievalProfile | None = None
    ) -> SearchResponse:
        """Return the best blocks for a query, found with *profile* or the service's own.

        Raises ``VAULT_NOT_OPEN``, ``VALIDATION_ERROR`` for a folder outside the vault, and for a
        mode that can't be used ``EMBEDDING_MODEL_UNAVAILABLE``, ``INDEX_MODEL_MISMATCH``,
        ``VECTOR_INDEX_REBUILD_REQUIRED`` or ``EMBEDDING_DIMENSION_MISMATCH``.
        """
        wanted = self._filter(request)
        if not request.query.strip():
            return SearchResponse(hits=[])
        chosen = profile or self.profile
        if request.retrieval is not None:
            chosen = replace(chosen, fusion=request.retrieval.fusion)
        hits = await self._pipeline.run(request.query, request.mode, wanted, request.limit, chosen)
        return SearchResponse(hits=hits)

    async def passages(self, block_ids: Sequence[str]) -> dict[str, Passage]:
        """Return the whole text of blocks by id; one that is gone by now is missing."""
        return await self._database.read(lambda conn: search_store.passages(conn, block_ids))

    def _filter(self, request: SearchRequest) -> SearchFilter:
        vault_id = self._vault.require_vault_id()
        folder = check_folder(request.folder) if request.folder else ""
        return SearchFilter(
            vault_id,
            compare_key(folder) or None,
            tuple(dict.fromkeys(tag_key(tag.removeprefix("#")) for tag in request.tags or ())),
            tuple(dict.fromkeys(request.note_ids or ())),
        )

    # -- index ---------------------------------------------------------------------------------

    def _scan_completed(self) -> None:
        if not self._vault.scanning:
            self._database.submit(lambda tx: store.put_state(tx, COMPLETED_STATE, utc_now()))

    async def rebuild(self, scope: RebuildScope) -> RebuildAccepted:
        """Start to build the index, or a part of it, anew; see :class:`IndexRebuilds`."""
        job_id = await self.rebuilds.start(scope)
        return RebuildAccepted(
            status="accepted", message=text("operation.rebuild_requested"), job_id=job_id
        )

    async def status(self) -> IndexStatus:
        """Return what the index is doing and what it was made with."""
        jobs = await self.rebuilds.unfinished()
        completed, error = await self._database.read(
            lambda conn: (
                store.get_state(conn, COMPLETED_STATE),
                store.get_state(conn, ERROR_STATE),
            )
        )
        vault = await self._vault.status()
        vectors = await self._vectors.state()
        scanning = vault.state == "scanning"
        active, progress = None, None
        if jobs:
            active = jobs[0].job_id
            if jobs[0].progress:
                progress = IndexProgress.model_validate(localise(jobs[0].progress))
        elif scanning:
            active, progress = f"scan_{self._vault.vault_id}", _scan_progress(vault)
        elif vectors.working:
            active = f"vectors_{self._vault.vault_id}"
        running = active is not None
        return IndexStatus(
            status="running" if running else "failed" if error else "idle",
            pending_jobs=len(jobs) + scanning + vectors.working,
            active_job_id=active,
            embedding=_space(vectors.embedding),
            vector_index=_index(vectors),
            last_completed_at=completed,
            error_message=_error_message(error) if not running else None,
            progress=progress,
        )

    async def check_model(self) -> None:
        """Raise ``EMBEDDING_MODEL_UNAVAILABLE`` if there is no embedding model."""
        await self._vectors.check_model()

    async def check_usable(self) -> None:
        """Raise the code of the last rebuild if that failed."""
        error = await self._database.read(lambda conn: store.get_state(conn, ERROR_STATE))
        if error:
            raise ProjectError(error["code"], **error["params"])


def _space(space: VectorSpace | None) -> EmbeddingSpace | None:
    return EmbeddingSpace.model_validate(space.describe()) if space else None


def _index(state: VectorState) -> VectorIndexState | None:
    if state.stored is None:
        return None
    compatible = state.stored == state.embedding
    return VectorIndexState.model_validate({**state.stored.describe(), "compatible": compatible})


def _scan_progress(vault: VaultStatus) -> IndexProgress:
    total = vault.total or 0
    return IndexProgress(
        phase="scanning",
        current=vault.scanned,
        total=total,
        percent=round(100 * min(1.0, vault.scanned / total), 1) if total else None,
        message=text("phase.scanning"),
    )


def _error_message(error: dict[str, Any] | None) -> str | None:
    if error is None:
        return None
    return f"{error['code']}: {error_text(error['code'], None, **error['params'])}"
