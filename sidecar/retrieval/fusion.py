"""Brings the two legs of a hybrid search together."""

from dataclasses import dataclass
from typing import Final

from sidecar.retrieval.profile import Fusion

Ranked = list[tuple[int, float]]
"""(block number, score), best first."""

LEG_WEIGHT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Fused:
    """A block with its place in each leg that found it: (rank from 1, score)."""

    block_no: int
    score: float
    fts: tuple[int, float] | None
    vector: tuple[int, float] | None


def fuse(text: Ranked, vector: Ranked, fusion: Fusion, rrf_k: int) -> list[Fused]:
    """Return every block that a leg found, once, the best first."""
    places = [
        {number: (rank, score) for rank, (number, score) in enumerate(leg, 1)}
        for leg in (text, vector)
    ]
    if fusion == "rrf":
        parts = [
            {number: 1 / (rrf_k + rank) for number, (rank, _) in leg.items()} for leg in places
        ]
    else:
        parts = [_normalised(leg) for leg in (text, vector)]
    fused = [
        Fused(
            number,
            sum(part.get(number, 0.0) for part in parts),
            *(leg.get(number) for leg in places),
        )
        for number in dict.fromkeys([*places[0], *places[1]])
    ]
    return sorted(fused, key=lambda found: -found.score)


def _normalised(leg: Ranked) -> dict[int, float]:
    """Return the leg's scores scaled to 0-1 within this query, times its weight."""
    if not leg:
        return {}
    scores = [score for _, score in leg]
    low, high = min(scores), max(scores)
    if high == low:
        return dict.fromkeys((number for number, _ in leg), LEG_WEIGHT)
    return {number: LEG_WEIGHT * (score - low) / (high - low) for number, score in leg}


def alone(ranked: Ranked, leg: str) -> list[Fused]:
    """Return the hits of one leg in the same form."""
    return [
        Fused(
            number,
            score,
            (rank, score) if leg == "fts" else None,
            (rank, score) if leg == "vector" else None,
        )
        for rank, (number, score) in enumerate(ranked, 1)
    ]
