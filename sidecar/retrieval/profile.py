"""The one set of parameters of retrieval: for search, for chat, and for benchmarks."""

from dataclasses import dataclass
from typing import Literal

Fusion = Literal["rrf", "weighted"]


@dataclass(frozen=True, slots=True)
class RetrievalProfile:
    """How hits are found and put in order."""

    profile_id: str = "default-v2"
    version: int = 2
    fts_recall: int = 20
    """Candidates that full text hands to fusion, at the least the limit of the search."""
    vector_recall: int = 20
    rrf_k: int = 60
    rerank: bool = True
    """Whether candidates are put in order by a reranker, where one is installed."""
    rerank_candidates: int = 20
    context_top_k: int = 8
    """Blocks that a chat's context holds at the most."""
    score_threshold: float = 0.0
    """Hits whose final score is lower are left out."""
    fusion: Fusion = "rrf"


DEFAULT_PROFILE = RetrievalProfile()
