"""The sets of vectors on disk: opened when they are needed, filled batch by batch."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sidecar.kernel.database import Database
from sidecar.kernel.logging import get_logger
from sidecar.retrieval.blocks import plain
from sidecar.retrieval.embedding import Embedder, Source, checked
from sidecar.retrieval.vectors import store as vector_store
from sidecar.retrieval.vectors.file import VectorFile
from sidecar.retrieval.vectors.store import PendingBlock, VectorSet

# So many texts the local model takes at once: a query waits for no more than these. A provider is
# sent several requests at once, and a query needn't wait for them.
EMBEDDED_AT_ONCE: Final[dict[Source, int]] = {"local": 16, "api": 40}
_SUFFIX: Final = ".f32"

log = get_logger(__name__)


class VectorSets:
    """Files of vectors by set."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._open: dict[int, VectorFile] = {}
        self._opening = asyncio.Lock()

    async def file_of(self, made: VectorSet) -> VectorFile:
        """Return the file of a set, opened."""
        async with self._opening:
            file = self._open.get(made.set_id)
            if file is None:
                slots = await self._database.read(
                    lambda conn: vector_store.slots_of(conn, made.set_id)
                )
                file = await asyncio.to_thread(
                    VectorFile, self._path(made.set_id), made.space.dimension, slots
                )
                self._open[made.set_id] = file
            return file

    def _path(self, set_id: int) -> Path:
        return self._folder / f"{set_id}{_SUFFIX}"

    async def fill(self, made: VectorSet, embedder: Embedder) -> int:
        """Embed the next blocks of a set; returns how many there were, 0 when it is whole."""
        current = await self._database.read(lambda conn: vector_store.get_set(conn, made.set_id))
        if current is None:
            return 0
        blocks = await self._database.read(
            lambda conn: vector_store.pending_blocks(
                conn, current, EMBEDDED_AT_ONCE[current.space.source]
            )
        )
        if not blocks:
            return 0
        vectors = checked(
            embedder.space,
            await embedder.embed_passages([passage_of(block) for block in blocks]),
            len(blocks),
        )
        file = await self.file_of(current)
        slots = await asyncio.to_thread(file.write, vectors)
        numbers = [block.block_no for block in blocks]
        stored = await self._database.write(
            lambda tx: vector_store.add_vectors(
                tx, made.set_id, zip(numbers, slots, strict=True), numbers[-1]
            )
        )
        if stored:
            file.publish(numbers, slots)
        return len(blocks)

    async def drop_gone(self, made: VectorSet) -> None:
        """Free the room of blocks that are gone."""
        gone = await self._database.write(lambda tx: vector_store.drop_gone(tx, made.set_id))
        if gone:
            (await self.file_of(made)).forget(gone)

    async def remove(self, set_ids: Sequence[int]) -> None:
        """Remove the files of sets that are deleted."""
        for set_id in set_ids:
            file = self._open.pop(set_id, None)
            if file is not None:
                file.close()
            await asyncio.to_thread(_unlink, self._path(set_id))

    async def remove_strangers(self) -> None:
        """Remove files that no set belongs to: what a killed process left."""
        known = await self._database.read(vector_store.all_set_ids)
        for path in await asyncio.to_thread(lambda: list(self._folder.glob(f"*{_SUFFIX}"))):
            if path.stem.isdigit() and int(path.stem) not in known:
                await asyncio.to_thread(_unlink, path)

    def close(self) -> None:
        """Let go of every file."""
        for file in self._open.values():
            file.close()
        self._open.clear()


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        # Windows keeps a file that a search still reads; the next start removes it.
        log.info("vectors.file_in_use")


def passage_of(block: PendingBlock) -> str:
    """Return the text that a block is embedded by: its headings give it its subject."""
    text = plain(block.text, block.kind)
    above = " › ".join(block.headings) or block.title
    return f"{above}\n{text}" if text else above
