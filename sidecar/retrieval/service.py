"""Search and the state of the index."""

import sqlite3
from typing import Any

from sidecar.kernel.catalogue import error_text, localise, text
from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.retrieval import store
from sidecar.retrieval.profile import DEFAULT_PROFILE, RetrievalProfile
from sidecar.retrieval.rebuild import COMPLETED_STATE, ERROR_STATE, IndexRebuilds
from sidecar.retrieval.schemas import (
    IndexProgress,
    IndexStatus,
    LegRank,
    Provenance,
    RebuildAccepted,
    RebuildScope,
    SearchHit,
    SearchRequest,
    SearchResponse,
)
from sidecar.retrieval.snippets import snippet_of
from sidecar.retrieval.store import FoundBlock, SearchFilter
from sidecar.retrieval.terms import read_query
from sidecar.retrieval.text_leg import TextLeg
from sidecar.vault.schemas import VaultStatus
from sidecar.vault.service import VaultService, check_folder, compare_key, tag_key

log = get_logger(__name__)


class RetrievalService:
    """Finds blocks of the open vault's notes."""

    def __init__(
        self,
        database: Database,
        vault: VaultService,
        rebuilds: IndexRebuilds,
        profile: RetrievalProfile = DEFAULT_PROFILE,
    ) -> None:
        self._database = database
        self._vault = vault
        self.rebuilds = rebuilds
        self.profile = profile
        self._text = TextLeg()
        vault.on_scanned(self._scan_completed)

    async def start(self) -> None:
        """Bring the index up to date with this version of the program, in the background."""
        await self.rebuilds.start_if_outdated()

    # -- search --------------------------------------------------------------------------------

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return the best blocks for a query.

        Raises ``VAULT_NOT_OPEN``, ``VALIDATION_ERROR`` for a folder outside the vault, and
        ``EMBEDDING_MODEL_UNAVAILABLE`` for a mode that needs a model.
        """
        wanted = self._filter(request)
        if not request.query.strip():
            return SearchResponse(hits=[])
        if request.mode != "fts":
            raise ProjectError("EMBEDDING_MODEL_UNAVAILABLE")
        query = read_query(request.query)

        def run(conn: sqlite3.Connection) -> list[SearchHit]:
            ranked = self._text.find(conn, query, wanted, request.limit)
            blocks = store.load_blocks(conn, [number for number, _ in ranked])
            return [
                _hit(blocks[number], score, query.words, LegRank(rank=rank, score=score))
                for rank, (number, score) in enumerate(ranked, 1)
            ]

        hits = await self._database.read(run)
        hits.sort(key=lambda hit: (-hit.score, hit.note_id, hit.block_id))
        return SearchResponse(hits=hits)

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
        scanning = vault.state == "scanning"
        active, progress = None, None
        if jobs:
            active = jobs[0].job_id
            if jobs[0].progress:
                progress = IndexProgress.model_validate(localise(jobs[0].progress))
        elif scanning:
            active, progress = f"scan_{self._vault.vault_id}", _scan_progress(vault)
        running = active is not None
        return IndexStatus(
            status="running" if running else "failed" if error else "idle",
            pending_jobs=len(jobs) + scanning,
            active_job_id=active,
            embedding=None,
            vector_index=None,
            last_completed_at=completed,
            error_message=_error_message(error) if not running else None,
            progress=progress,
        )

    async def check_usable(self) -> None:
        """Raise the code of the last rebuild if that failed."""
        error = await self._database.read(lambda conn: store.get_state(conn, ERROR_STATE))
        if error:
            raise ProjectError(error["code"], **error["params"])


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


def _hit(found: FoundBlock, score: float, words: tuple[str, ...], rank: LegRank) -> SearchHit:
    block = found.block
    return SearchHit(
        note_id=found.note_id,
        block_id=block.block_id,
        title=found.note_title,
        file_path=found.file_path,
        heading_path=list(block.headings),
        snippet=snippet_of(block.text, block.kind, words),  # type: ignore[arg-type]
        score=score,
        source_audio=found.source_audio,
        start_time=block.start_time,
        end_time=block.end_time,
        speaker=block.speaker,
        provenance=Provenance(
            legs=["fts"],
            fts=rank,
            vector=None,
            fusion=None,
            reranked=False,
            query_embedding_cache=None,
        ),
    )
