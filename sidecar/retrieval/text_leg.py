"""The full text leg of a search."""

from collections.abc import Sequence

from sidecar.kernel.database import Readable
from sidecar.retrieval import store
from sidecar.retrieval.store import SearchFilter
from sidecar.retrieval.terms import TextQuery

Ranked = list[tuple[int, float]]
"""(block number, score), best first."""

# What holds only some of the words comes after everything that holds them all.
_BELOW = 0.999


def find_text(conn: Readable, query: TextQuery, wanted: SearchFilter, limit: int) -> Ranked:
    """Return the best blocks: those with all the words first, then those with some of them."""
    if query.strict is None:
        return []
    found = store.match_text(conn, query.strict, wanted, limit)
    if query.loose is None or len(found) >= limit:
        return found
    known = {number for number, _ in found}
    rest = [
        (number, score)
        for number, score in store.match_text(conn, query.loose, wanted, limit)
        if number not in known
    ]
    return [*found, *_below(rest, found)][:limit]


def _below(rest: Sequence[tuple[int, float]], found: Ranked) -> Ranked:
    """Scale the scores of *rest* so that none is above the lowest of *found*."""
    if not rest or not found:
        return list(rest)
    factor = min(1.0, found[-1][1] * _BELOW / max(rest[0][1], 1e-9))
    return [(number, score * factor) for number, score in rest]
