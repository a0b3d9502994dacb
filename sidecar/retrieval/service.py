"""Search and the state of the index."""

import sqlite3
from typing import Final

from sidecar.kernel.catalogue import text
from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.retrieval import store
from sidecar.retrieval.profile import DEFAULT_PROFILE, RetrievalProfile
from sidecar.retrieval.schemas import (
    IndexProgress,
    IndexStatus,
    LegRank,
    Provenance,
    SearchHit,
    SearchRequest,
    SearchResponse,
)
from sidecar.retrieval.snippets import snippet_of
from sidecar.retrieval.store import FoundBlock, SearchFilter
from sidecar.retrieval.terms import read_query
from sidecar.retrieval.text_leg import TextLeg
from sidecar.vault.service import VaultService, check_folder, compare_key, tag_key

log = get_logger(__name__)

COMPLETED_STATE: Final = "last_completed_at"


class RetrievalService:
    """Finds blocks of the open vault's notes."""

    def __init__(
        self, database: Database, vault: VaultService, profile: RetrievalProfile = DEFAULT_PROFILE
    ) -> None:
        self._database = database
        self._vault = vault
        self.profile = profile
        self._text = TextLeg()
        vault.on_scanned(self._scan_completed)

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
        def write(tx: Transaction) -> None:
            store.put_state(tx, COMPLETED_STATE, utc_now())

        self._database.submit(write)

    async def status(self) -> IndexStatus:
        """Return what the index is doing and what it was made with."""
        completed = await self._database.read(lambda conn: store.get_state(conn, COMPLETED_STATE))
        vault = await self._vault.status()
        scanning = vault.state == "scanning"
        progress = None
        if scanning:
            total = vault.total or 0
            progress = IndexProgress(
                phase="scanning",
                current=vault.scanned,
                total=total,
                percent=round(100 * min(1.0, vault.scanned / total), 1) if total else None,
                message=text("phase.scanning"),
            )
        return IndexStatus(
            status="running" if scanning else "idle",
            pending_jobs=1 if scanning else 0,
            active_job_id=f"scan_{self._vault.vault_id}" if scanning else None,
            embedding=None,
            vector_index=None,
            error_message=None,
            last_completed_at=completed,
            progress=progress,
        )


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
