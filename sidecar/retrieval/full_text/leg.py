"""The full text leg of a search."""

import time
from collections import OrderedDict
from typing import Final

from sidecar.kernel.database import Readable
from sidecar.retrieval import search_store
from sidecar.retrieval.full_text.terms import TextQuery
from sidecar.retrieval.fusion import Ranked
from sidecar.retrieval.search_store import SearchFilter

# What more blocks than this hold says little, and ranking all of them takes longer than anything
# else: such words are looked for in titles and headings first.
COMMON: Final = 5000
# Blocks that are ranked at the most for a query that few or none hold as a whole.
LOOSE_ROWS: Final = 10_000
# What holds only some of the words comes after everything that holds them all.
_BELOW: Final = 0.999
_COUNTS_KEPT: Final = 4096
_COUNT_SECONDS: Final = 120.0


class TextLeg:
    """Finds blocks by their words. Its methods run on reader threads."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def find(self, conn: Readable, query: TextQuery, wanted: SearchFilter, limit: int) -> Ranked:
        """Return the best blocks: those with all the words first, then those with some of them."""
        if query.exact is None:
            return []
        found = self._all_words(conn, query, query.exact, wanted, limit)
        if len(found) >= limit or not query.loose:
            return found
        known = {number for number, _ in found}
        expression = self._some_words(conn, query.loose)
        rest = [
            (number, score)
            for number, score in search_store.match_text(conn, expression, wanted, limit)
            if number not in known
        ]
        return [*found, *_below(rest, found)][:limit]

    def _all_words(
        self, conn: Readable, query: TextQuery, exact: str, wanted: SearchFilter, limit: int
    ) -> Ranked:
        if self._is_common(conn, exact):
            found = search_store.match_text(conn, _in_headings(exact), wanted, limit)
            return (
                found
                if len(found) >= limit
                else search_store.match_text(conn, exact, wanted, limit)
            )
        if query.prefix is not None and not self._is_common(conn, query.prefix):
            exact = query.prefix
        return search_store.match_text(conn, exact, wanted, limit)

    def _some_words(self, conn: Readable, parts: tuple[str, ...]) -> str:
        """Return an expression for blocks with some of the words: the rarest, which tell most."""
        counted = sorted((self._count(conn, part), part) for part in parts)
        telling: list[str] = []
        rows = 0
        for count, part in counted:
            if count >= COMMON or (telling and rows + count > LOOSE_ROWS):
                break
            telling.append(part)
            rows += count
        return " OR ".join(telling) if telling else _in_headings(" OR ".join(parts))

    def _is_common(self, conn: Readable, expression: str) -> bool:
        return self._count(conn, expression) >= COMMON

    def _count(self, conn: Readable, expression: str) -> int:
        """Return how many blocks match, no more than ``COMMON``; remembered for a while."""
        now = time.monotonic()
        known = self._counts.get(expression)
        if known is None or now - known[0] > _COUNT_SECONDS:
            known = (now, search_store.count_text(conn, expression, COMMON))
            self._counts[expression] = known
            while len(self._counts) > _COUNTS_KEPT:
                self._counts.popitem(last=False)
        return known[1]


def _in_headings(expression: str) -> str:
    return f"{{title headings}} : ({expression})"


def _below(rest: Ranked, found: Ranked) -> Ranked:
    """Scale the scores of *rest* so that none is above the lowest of *found*."""
    if not rest or not found:
        return rest
    factor = min(1.0, found[-1][1] * _BELOW / max(rest[0][1], 1e-9))
    return [(number, score * factor) for number, score in rest]
