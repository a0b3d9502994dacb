"""The vectors of one set: a file of rows, searched exactly, or with a sketch when there are very many.

A row is a vector of 32-bit floats at ``slot * dimension``. Which block a slot belongs to is known to
the database, and kept in memory here; a slot whose block is gone is written over. A row is written
before the database knows of it, so what the database knows is always there.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.kernel.logging import get_logger
from sidecar.retrieval.vectors.sketch import Sketch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.retrieval.embedding import Vectors

log = get_logger(__name__)

FLOAT_BYTES: Final = 4
NO_BLOCK: Final = -1
GROW_SLOTS: Final = 1024
# Numbers in all vectors together up to which exact search is fast enough: 150,000 vectors of 384.
EXACT_FLOATS: Final = 57_600_000
# A sketch of fewer rows than this part of the file is made anew.
SKETCHED_PART: Final = 0.8


class VectorFile:
    """One file of vectors. Its methods block; one thread writes, any number search."""

    def __init__(self, path: Path, dimension: int, slots: Iterable[tuple[int, int]]) -> None:
        """Open or create the file; *slots* are the (block number, slot) pairs in use."""
        import numpy as np  # noqa: PLC0415 - heavy

        self.path = path
        self.dimension = dimension
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=True)
        self._gate = threading.Lock()
        self._row_bytes = dimension * FLOAT_BYTES
        known = list(slots)
        size = path.stat().st_size // self._row_bytes
        used = max((slot for _, slot in known), default=-1) + 1
        self._blocks: NDArray[np.int64] = np.full(max(size, used, GROW_SLOTS), NO_BLOCK, np.int64)
        self._slot_of: dict[int, int] = {}
        for block_no, slot in known:
            # A row beyond the end was lost with the power; its block is simply not found.
            if slot < size:
                self._blocks[slot] = block_no
                self._slot_of[block_no] = slot
        self._end = min(used, size)
        self._free = [slot for slot in range(self._end) if self._blocks[slot] == NO_BLOCK]
        self._matrix: Any = None
        self._sketch: Sketch | None = None
        self._sketching = threading.Lock()
        self._since_sketch: list[int] = []

    def __len__(self) -> int:
        """Return how many vectors there are."""
        return len(self._slot_of)

    @property
    def uses_sketch(self) -> bool:
        """Whether a search looks at a short form of the vectors first."""
        with self._gate:
            return self._good_sketch(self._rows()) is not None

    def write(self, vectors: "Vectors") -> list[int]:
        """Write rows durably and return their slots; nobody finds them before :meth:`publish`."""
        slots = []
        with self._gate:
            for _ in range(len(vectors)):
                if self._free:
                    slots.append(self._free.pop())
                else:
                    slots.append(self._end)
                    self._end += 1
        flags = os.O_RDWR | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags)
        try:
            for slot, vector in zip(slots, vectors, strict=True):
                os.lseek(descriptor, slot * self._row_bytes, os.SEEK_SET)
                os.write(descriptor, vector.astype("<f4").tobytes())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return slots

    def publish(self, blocks: Sequence[int], slots: Sequence[int]) -> None:
        """Let the rows be found as the vectors of *blocks*."""
        import numpy as np  # noqa: PLC0415 - heavy

        with self._gate:
            if self._end > len(self._blocks):
                grown = np.full(max(self._end, len(self._blocks) * 2), NO_BLOCK, np.int64)
                grown[: len(self._blocks)] = self._blocks
                self._blocks = grown
            for block_no, slot in zip(blocks, slots, strict=True):
                self._blocks[slot] = block_no
                self._slot_of[block_no] = slot
            if self._sketching.locked():
                self._since_sketch += slots
            elif self._sketch is not None:
                self._since_sketch += slots
                self._update_sketch(self._sketch)

    def forget(self, blocks: Iterable[int]) -> None:
        """Free the slots of blocks that are gone."""
        with self._gate:
            for block_no in blocks:
                slot = self._slot_of.pop(block_no, None)
                if slot is not None:
                    self._blocks[slot] = NO_BLOCK
                    self._free.append(slot)

    def search(
        self, query: "Vectors", count: int, allowed: Iterable[int] | None
    ) -> list[tuple[int, float]]:
        """Return (block number, similarity) of the *count* nearest, the nearest first.

        *allowed* are the numbers of the blocks that may be found; None are all.
        """
        import numpy as np  # noqa: PLC0415 - heavy

        with self._gate:
            rows = self._rows()
            blocks = self._blocks[: len(rows)].copy()
        usable = blocks != NO_BLOCK
        sketch = self._good_sketch(rows)
        if allowed is not None:
            wanted = np.fromiter(allowed, np.int64)
            usable &= np.isin(blocks, wanted)
        places = np.flatnonzero(usable)
        if not len(places):
            return []
        if sketch is not None:
            early = places[places < sketch.count]
            late = places[places >= sketch.count]
            places = np.concatenate([sketch.find(query, rows, early, count), late])
        scores = self._scores(rows, query, places)
        count = min(count, len(places))
        best = np.argpartition(-scores, count - 1)[:count]
        # Equal similarities are in the order of the blocks.
        order = np.lexsort((blocks[places[best]], -scores[best]))
        return [(int(blocks[places[i]]), float(scores[i])) for i in best[order]]

    def _good_sketch(self, rows: Any) -> Sketch | None:
        """Return a sketch if there are so many rows that it is worth it; it is made meanwhile."""
        if rows.size <= EXACT_FLOATS:
            return None
        if self._needs_sketch(len(rows)) and not self._sketching.locked():
            threading.Thread(target=self.make_sketch, name="vector-sketch", daemon=True).start()
        sketch = self._sketch
        return sketch if sketch is not None and sketch.is_good else None

    def _needs_sketch(self, rows: int) -> bool:
        return self._sketch is None or self._sketch.count < SKETCHED_PART * rows

    def make_sketch(self) -> None:
        """Make the sketch that a very large file is searched with; takes seconds."""
        with self._sketching:
            with self._gate:
                rows = self._rows()
                usable = self._blocks[: len(rows)] != NO_BLOCK
                if not self._needs_sketch(len(rows)):
                    return
                self._since_sketch.clear()
            sketch = Sketch(rows, usable)
            with self._gate:
                self._update_sketch(sketch)
                self._sketch = sketch
        log.info(
            "vectors.sketched",
            extra={
                "rows": sketch.count,
                "allowance": sketch.allowance,
                "recall": round(sketch.recall, 4),
            },
        )

    def _update_sketch(self, sketch: Sketch) -> None:
        """Tell a sketch of the rows that were written since it was begun."""
        import numpy as np  # noqa: PLC0415 - heavy

        slots = np.array(self._since_sketch, np.int64)
        self._since_sketch.clear()
        slots = slots[slots < sketch.count]
        if len(slots):
            sketch.update(slots, self._rows()[slots])

    def _scores(self, rows: Any, query: "Vectors", places: "NDArray[np.int64]") -> Any:
        import numpy as np  # noqa: PLC0415 - heavy

        # No product of matrices: the library that computes those does it on all cores, which wait
        # for each other and for the full text search beside them. Reading the rows is the work, and
        # one core can do it in half the time. Equal vectors get equal scores, too.
        if len(places) * 4 < len(rows):
            return np.einsum("ij,j->i", rows[places], query)
        return np.einsum("ij,j->i", rows, query)[places]

    def _rows(self) -> Any:
        """Return the file as a matrix, mapped anew if it has grown."""
        import numpy as np  # noqa: PLC0415 - heavy

        size = self.path.stat().st_size // self._row_bytes
        if self._matrix is None or len(self._matrix) < min(size, self._end):
            if size == 0:
                return np.empty((0, self.dimension), np.float32)
            self._matrix = np.memmap(self.path, "<f4", "r", shape=(size, self.dimension))
        return self._matrix[: min(len(self._matrix), len(self._blocks))]

    def close(self) -> None:
        """Let go of the file, so that it can be removed on every system."""
        with self._gate:
            self._matrix = None
