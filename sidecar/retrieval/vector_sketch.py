"""Makes the search of very many vectors faster: a short form of each finds the candidates.

The short form is the vector seen along the directions in which the vectors differ most (its principal
components), a quarter as long. The candidates are then compared exactly. How many are needed is found
out by measuring: for some of the stored vectors the answer must hold what the exact answer holds.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.retrieval.embedding import Vectors

RECALL_WANTED: Final = 0.98
SHORTER: Final = 4
"""How many times shorter the short form is."""
SAMPLE: Final = 20_000
PROBES: Final = 50
PROBED_HITS: Final = 20
ROWS_AT_ONCE: Final = 16_384
FIRST_CANDIDATES: Final = 500
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
        self.candidates, self.recall = self._measure(rows, places, draw)

    @property
    def is_good(self) -> bool:
        """Whether answers hold what exact answers hold."""
        return self.recall >= RECALL_WANTED

    def update(self, slots: "NDArray[np.int64]", vectors: "Vectors") -> None:
        """Take in rows that were written over."""
        self._short[slots] = vectors @ self._axes

    def find(
        self, query: "Vectors", places: "NDArray[np.int64]", wanted: int
    ) -> "NDArray[np.int64]":
        """Return those of *places* that are worth an exact comparison, for *wanted* hits."""
        count = self.candidates * max(1, wanted // PROBED_HITS)
        nearest: NDArray[np.int64] = self._nearest(query, places, count)
        return nearest

    def _nearest(self, query: "Vectors", places: Any, count: int) -> Any:
        import numpy as np  # noqa: PLC0415 - heavy

        if len(places) <= count:
            return places
        short = query @ self._axes
        short_forms = self._short if len(places) == self.count else self._short[places]
        scores = np.einsum("ij,j->i", short_forms, short)
        return places[np.argpartition(-scores, count - 1)[:count]]

    def _measure(self, rows: Any, places: Any, draw: Any) -> tuple[int, float]:
        """Return how many candidates are needed, and the part of exact hits that they hold."""
        import numpy as np  # noqa: PLC0415 - heavy

        chosen = draw.choice(places, min(PROBES, len(places)), replace=False)
        probes = np.asarray(rows[np.sort(chosen)])
        hits = min(PROBED_HITS, len(places))
        exact = _nearest_of_all(rows, probes, places, hits)
        count, recall = FIRST_CANDIDATES, 0.0
        while True:
            found = [
                np.isin(best, self._nearest(probe, places, count)).mean()
                for probe, best in zip(probes, exact, strict=True)
            ]
            recall = float(np.mean(found))
            if recall >= RECALL_WANTED or count * 2 > MOST_CANDIDATES * len(places):
                return count, recall
            count *= 2


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
