"""A search from its words to its hits: two legs, fusion, reranking, and what is shown of each hit."""

import asyncio
from dataclasses import dataclass

from sidecar.kernel.database import Database
from sidecar.retrieval import search_store
from sidecar.retrieval.embedding import ModelSource
from sidecar.retrieval.full_text.leg import TextLeg
from sidecar.retrieval.full_text.terms import TextQuery, read_query
from sidecar.retrieval.fusion import Fused, Ranked, alone, fuse
from sidecar.retrieval.profile import RetrievalProfile
from sidecar.retrieval.schemas import LegRank, Provenance, SearchHit, SearchMode
from sidecar.retrieval.search_store import FoundBlock, SearchFilter
from sidecar.retrieval.snippets import snippet_of
from sidecar.retrieval.vectors.leg import VectorHits, VectorLeg


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A block on its way to become a hit."""

    found: FoundBlock
    fused: Fused
    score: float
    reranked: bool


class SearchPipeline:
    """Runs searches with the parameters of a profile."""

    def __init__(
        self, database: Database, text: TextLeg, vectors: VectorLeg, models: ModelSource
    ) -> None:
        self._database = database
        self._text = text
        self._vectors = vectors
        self._models = models

    async def run(
        self,
        query: str,
        mode: SearchMode,
        wanted: SearchFilter,
        limit: int,
        profile: RetrievalProfile,
    ) -> list[SearchHit]:
        """Return at most *limit* hits, best first."""
        words = read_query(query)
        hits: VectorHits | None = None
        if mode == "fts":
            fused = alone(await self._find_text(words, wanted, limit), "fts")
        elif mode == "vector":
            hits = await self._vectors.find(query, wanted, limit)
            fused = alone(hits.ranked, "vector")
        else:
            # Both at once: full text runs in the database's threads, vectors in the model's.
            vector_leg = asyncio.ensure_future(
                self._vectors.find(query, wanted, max(limit, profile.vector_recall))
            )
            try:
                text = await self._find_text(words, wanted, max(limit, profile.fts_recall))
                hits = await vector_leg
            finally:
                vector_leg.cancel()
            fused = fuse(text, hits.ranked, profile.fusion, profile.rrf_k)
        candidates = await self._load(fused)
        if mode == "hybrid" and profile.rerank:
            candidates = await self._rerank(query, candidates, profile.rerank_candidates)
        kept = [found for found in candidates if found.score >= profile.score_threshold]
        fusion = profile.fusion if mode == "hybrid" else None
        return [_hit(found, words, hits, fusion) for found in kept[:limit]]

    async def _find_text(self, words: TextQuery, wanted: SearchFilter, limit: int) -> Ranked:
        return await self._database.read(lambda conn: self._text.find(conn, words, wanted, limit))

    async def _load(self, fused: list[Fused]) -> list[_Candidate]:
        """Return the blocks that there still are, the best first and equals in one order."""
        numbers = [found.block_no for found in fused]
        blocks = await self._database.read(lambda conn: search_store.load_blocks(conn, numbers))
        candidates = [
            _Candidate(blocks[found.block_no], found, found.score, reranked=False)
            for found in fused
            if found.block_no in blocks
        ]
        return sorted(candidates, key=_order)

    async def _rerank(
        self, query: str, candidates: list[_Candidate], count: int
    ) -> list[_Candidate]:
        reranker = await self._models.reranker()
        if reranker is None or not candidates:
            return candidates
        first, rest = candidates[:count], candidates[count:]
        scores = await reranker.scores(query, [found.found.block.text for found in first])
        judged = [
            _Candidate(found.found, found.fused, score, reranked=True)
            for found, score in zip(first, scores, strict=True)
        ]
        judged.sort(key=_order)
        lowest = judged[-1].score
        # What wasn't judged keeps its order, after everything that was.
        factor = min(1.0, lowest / rest[0].score) if rest and lowest > 0 else 0.0
        return judged + [
            _Candidate(found.found, found.fused, found.score * factor, reranked=False)
            for found in rest
        ]


def _order(candidate: _Candidate) -> tuple[float, str, str]:
    return -candidate.score, candidate.found.note_id, candidate.found.block.block_id


def _hit(
    candidate: _Candidate, words: TextQuery, hits: VectorHits | None, fusion: str | None
) -> SearchHit:
    found, fused = candidate.found, candidate.fused
    block = found.block
    legs = {"fts": fused.fts, "vector": fused.vector}
    ranks = {name: LegRank(rank=leg[0], score=leg[1]) for name, leg in legs.items() if leg}
    return SearchHit(
        note_id=found.note_id,
        block_id=block.block_id,
        title=found.note_title,
        file_path=found.file_path,
        heading_path=list(block.headings),
        snippet=snippet_of(block.text, block.kind, words.words),
        score=candidate.score,
        source_audio=found.source_audio,
        start_time=block.start_time,
        end_time=block.end_time,
        speaker=block.speaker,
        provenance=Provenance(
            legs=list(ranks),
            fts=ranks.get("fts"),
            vector=ranks.get("vector"),
            fusion=fusion,
            reranked=candidate.reranked,
            query_embedding_cache=hits.cache if hits else None,
            embedding=hits.embedding if hits else None,
        ),
    )
