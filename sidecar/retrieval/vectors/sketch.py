"""Makes the search of very many vectors faster: a short form of each finds the candidates.

The short form is the vector seen along the directions in which the vectors differ most (its principal
components), a quarter as long. What it leaves out makes its similarities wrong by an amount that differs
from query to query, and is seen at those that look nearest. Whatever may be among the best in spite of
it is compared exactly. How generously that is judged is found out by measuring: the answers to probes
must hold what the exact answers hold.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.retrieval.embedding import Vectors

RECALL_WANTED: Final = 0.98
# Probes are like the vectors that are stored; real queries are less so.
RECALL_OF_PROBES: Final = 0.99
SHORTER: Final = 4
"""How many times shorter the short form is."""
SAMPLE: Final = 20_000
PROBES: Final = 60
PROBED_HITS: Final = 20
ROWS_AT_ONCE: Final = 16_384
FIRST_CANDIDATES: Final = 25
"""For each hit that is wanted, so many are compared at once, to know how good the best are."""
ALLOWANCES: Final = (2.5, 3.0, 4.0, 5.0)
# More candidates than this part of all vectors, and the exact search is as fast.
MOST_CANDIDATES: Final = 0.1


class Sketch:
    """The short forms of the first rows of a file."""

    def __init__(self, rows: Any, usable: "NDArray[np.bool_]") -> None:
        """Learn from *rows*, of which only the *usable* ones count; takes seconds for many."""
        import numpy as np  # noqa: PLC0415 - heavy

        draw = np.random.default_rng(0)
        places = np.flatnonzero(usable)
        sample = rows[np.sort(draw.choice(places, min(SAMPLE, len(places)), replace=False))]
        self._axes = _principal_axes(np.asarray(sample), max(1, rows.shape[1] // SHORTER))
        self.count = len(rows)
        self._short = np.empty((self.count, self._axes.shape[1]), np.float32)
        for start in range(0, self.count, ROWS_AT_ONCE):
            end = start + ROWS_AT_ONCE
            self._short[start:end] = rows[start:end] @ self._axes
        self.allowance, self.recall = self._measure(rows, places, draw)

    @property
    def is_good(self) -> bool:
        """Whether answers hold what exact answers hold."""
        return self.recall >= RECALL_OF_PROBES

    def update(self, slots: "NDArray[np.int64]", vectors: "Vectors") -> None:
        """Take in rows that were written over."""
        self._short[slots] = vectors @ self._axes

    def find(
        self, query: "Vectors", rows: Any, places: "NDArray[np.int64]", wanted: int
    ) -> "NDArray[np.int64]":
        """Return those of *places* that are worth an exact comparison, for *wanted* hits."""
        found: NDArray[np.int64] = self._find(query, rows, places, wanted, self.allowance)
        return found

    def _find(self, query: Any, rows: Any, places: Any, wanted: int, allowance: float) -> Any:
        import numpy as np  # noqa: PLC0415 - heavy

        first = FIRST_CANDIDATES * wanted
        if len(places) <= first:
            return places
        short_forms = self._short if len(places) == self.count else self._short[places]
        scores = np.einsum("ij,j->i", short_forms, query @ self._axes)
        likely = np.argpartition(-scores, first - 1)[:first]
        exact = np.einsum("ij,j->i", rows[places[likely]], query)
        errors = exact - scores[likely]
        best = np.argpartition(-exact, wanted - 1)[:wanted]
        # Among the nearest the error is greatest: what the short form leaves out of them is alike, too.
        reach = float(errors[best].mean() + allowance * errors.std())
        found = places[scores >= exact[best].min() - reach]
        if len(found) > MOST_CANDIDATES * len(places):
            return places
        return np.union1d(found, places[likely])

    def _measure(self, rows: Any, places: Any, draw: Any) -> tuple[float, float]:
        """Return the allowance that is needed, and the part of exact hits that it finds."""
        import numpy as np  # noqa: PLC0415 - heavy

        hits = min(PROBED_HITS, len(places))
        probes = self._probes(rows, places, draw)
        exact = _nearest_of_all(rows, probes, places, hits)
        recall = 0.0
        for allowance in ALLOWANCES:
            found = [self._find(probe, rows, places, hits, allowance) for probe in probes]
            recall = float(
                np.mean(
                    [np.isin(best, some).mean() for best, some in zip(exact, found, strict=True)]
                )
            )
            searched = np.mean([len(some) for some in found]) / len(places)
            if recall >= RECALL_OF_PROBES and searched <= MOST_CANDIDATES:
                return allowance, recall
        return ALLOWANCES[-1], 0.0

    def _probes(self, rows: Any, places: Any, draw: Any) -> Any:
        """Return vectors to look for: some that are stored, and some that lie between two of them."""
        import numpy as np  # noqa: PLC0415 - heavy

        chosen = draw.choice(places, min(PROBES, len(places)), replace=False)
        probes = np.array(rows[np.sort(chosen)])
        half = len(probes) // 2
        probes[:half] += rows[np.sort(draw.choice(places, half, replace=False))]
        return probes / np.maximum(np.linalg.norm(probes, axis=1, keepdims=True), 1e-12)


def _principal_axes(sample: Any, count: int) -> Any:
    import numpy as np  # noqa: PLC0415 - heavy

    _, axes = np.linalg.eigh(sample.T @ sample)
    return np.ascontiguousarray(axes[:, -count:].astype(np.float32))


def _nearest_of_all(rows: Any, probes: Any, places: Any, count: int) -> list[Any]:
    """Return the exact nearest of *places* for each probe; all probes at once, which is much faster."""
    import numpy as np  # noqa: PLC0415 - heavy

    scores = np.empty((len(probes), len(rows)), np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        scores[:, start : start + ROWS_AT_ONCE] = probes @ rows[start : start + ROWS_AT_ONCE].T
    return [places[np.argpartition(-line[places], count - 1)[:count]] for line in scores]
