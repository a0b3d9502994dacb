"""The embedding models and rerankers that lie in the model folders, run by a worker."""

import asyncio
import base64
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.kernel.logging import get_logger
from sidecar.kernel.workers.client import WorkerPool, WorkerSpec
from sidecar.retrieval.embedding import Embedder, Reranker, VectorSpace
from sidecar.retrieval.models.client import ModelWorker, Note, Work, folder_of
from sidecar.retrieval.models.description import (
    ModelDescription,
    NotAModelError,
    read_embedding_model,
    read_reranker,
)
from sidecar.retrieval.models.worker import WORKER_NAME

if TYPE_CHECKING:
    from sidecar.retrieval.embedding import Vectors

log = get_logger(__name__)

# A model that is installed or removed is noticed after this long.
LOOK_SECONDS: Final = 2.0


class LocalEmbedder:
    """An embedding model in a folder."""

    def __init__(self, description: ModelDescription, worker: ModelWorker) -> None:
        self._description = description
        self._worker = worker
        self._space = VectorSpace(
            description.model_id,
            description.model_version,
            description.dimension,
            description.normalization,
        )

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return folder_of(self._description)

    @property
    def space(self) -> VectorSpace:
        """The space of its vectors."""
        return self._space

    async def embed_queries(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors of what is looked for."""
        return await self._embed(self._description.query_prefix, texts, series=False)

    async def embed_passages(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors of what is found."""
        return await self._embed(self._description.passage_prefix, texts, series=True)

    async def _embed(self, prefix: str, texts: Sequence[str], *, series: bool) -> "Vectors":
        import numpy as np  # noqa: PLC0415 - heavy

        params = {"texts": [prefix + text for text in texts]}
        work = Work("embedding", "embed", params, series=series)
        answer = await self._worker.ask(self._description, work)
        flat = np.frombuffer(base64.b64decode(answer["vectors"]), "<f4")
        return flat.reshape(len(texts), answer["dimension"])


class LocalReranker:
    """A cross-encoder in a folder."""

    def __init__(self, description: ModelDescription, worker: ModelWorker) -> None:
        self._description = description
        self._worker = worker

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return how well each text answers the query, from 0 to 1."""
        work = Work("rerank", "judge", {"query": query, "texts": list(texts)})
        answer = await self._worker.ask(self._description, work)
        scores: list[float] = answer["scores"]
        return scores


class LocalModelSource:
    """Looks into the model folders; no route is known to it.

    *is_usable* tells of a folder whether its files are those that were installed; it reads the disk.
    Where several models are installed, the one whose folder's name has the lowest *rank* is used; of
    equals the first by name. *note* keeps how each call went.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        workers: WorkerPool,
        is_usable: Callable[[Path], bool] = lambda _: True,
        rank: Callable[[str], int] = lambda _: 0,
        note: Note = lambda _: None,
    ) -> None:
        self._folders = tuple(folders)
        self._is_usable = is_usable
        self._rank = rank
        self._worker = ModelWorker(workers.add(WorkerSpec(WORKER_NAME)), note)
        self._found: tuple[Embedder | None, Reranker | None] = (None, None)
        self._looked_at: float | None = None
        self._looking = asyncio.Lock()
        self._described: dict[Path, tuple[int, ModelDescription | None]] = {}

    async def local(self) -> Embedder | None:
        """Return the embedding model of the folders that is preferred."""
        return (await self._look())[0]

    async def remote(self) -> Embedder | None:
        """Return None."""
        return None

    async def reranker(self) -> Reranker | None:
        """Return the reranker of the folders that is preferred."""
        return (await self._look())[1]

    def folders_at_work(self) -> set[Path]:
        """Return the folders of the models that answer a request right now."""
        return self._worker.folders_at_work()

    async def embedding_folder(self) -> Path | None:
        """Return the folder of the model that :meth:`local` returns."""
        model = (await self._look())[0]
        return model.folder if isinstance(model, LocalEmbedder) else None

    async def _look(self) -> tuple[Embedder | None, Reranker | None]:
        async with self._looking:
            now = time.monotonic()
            if self._looked_at is None or now - self._looked_at > LOOK_SECONDS:
                embedding, reranker = await asyncio.to_thread(self._search)
                self._found = (
                    LocalEmbedder(embedding, self._worker) if embedding else None,
                    LocalReranker(reranker, self._worker) if reranker else None,
                )
                self._looked_at = time.monotonic()
            return self._found

    def _search(self) -> tuple[ModelDescription | None, ModelDescription | None]:
        embedding = reranker = None
        for folder in self._candidates():
            if embedding is None:
                embedding = self._read(folder, is_reranker=False)
            if reranker is None:
                reranker = self._read(folder, is_reranker=True)
        return embedding, reranker

    def _candidates(self) -> list[Path]:
        found: list[Path] = []
        for folder in self._folders:
            try:
                children = sorted(path for path in folder.iterdir() if path.is_dir())
            except OSError:
                continue
            found += [folder, *children]
        return sorted(found, key=lambda folder: self._rank(folder.name))

    def _read(self, folder: Path, *, is_reranker: bool) -> ModelDescription | None:
        """Read a folder, unless nothing in it has changed since it was read last."""
        key = folder / ("reranker" if is_reranker else "embedding")
        stamp = _stamp(folder)
        known = self._described.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        read = read_reranker if is_reranker else read_embedding_model
        try:
            description: ModelDescription | None = read(folder)
            if not self._is_usable(folder):
                log.warning("models.damaged", extra={"model": folder.name})
                description = None
        except (NotAModelError, OSError):
            description = None
        self._described[key] = (stamp, description)
        return description


def _stamp(folder: Path) -> int:
    """Return a number that changes with the files of a folder."""
    parts = [folder, *folder.glob("*.json"), *folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    try:
        return hash(
            tuple(
                (str(part), part.stat().st_mtime_ns, part.stat().st_size) for part in sorted(parts)
            )
        )
    except OSError:
        return 0
