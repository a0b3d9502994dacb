"""Embedding models and a reranker that tests can see through."""

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sidecar.kernel.errors import ProjectError
from sidecar.retrieval.embedding import VectorSpace

SPACE = VectorSpace("hash", "1", 64, "l2")


@dataclass(slots=True)
class HashEmbedder:
    """Texts that share characters and words get vectors that are alike."""

    space: VectorSpace = SPACE
    queries: list[str] = field(default_factory=list)
    passages: list[str] = field(default_factory=list)
    error: ProjectError | None = None
    real_dimension: int | None = None
    gate: asyncio.Event | None = None
    """While it is there and not set, passages wait."""

    async def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed and remember."""
        self.queries += texts
        return self._embed(texts)

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed and remember."""
        if self.gate is not None:
            await self.gate.wait()
        self.passages += texts
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.error is not None:
            raise self.error
        dimension = self.real_dimension or self.space.dimension
        vectors = np.zeros((len(texts), dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % dimension] += 3.0
            row[0] += 0.1
        return vectors

    def changed(self, **fields: object) -> "HashEmbedder":
        """Return a model of another space."""
        return HashEmbedder(replace(self.space, **fields))  # type: ignore[arg-type]


@dataclass(slots=True)
class WordReranker:
    """Likes texts that hold a word."""

    word: str
    judged: list[str] = field(default_factory=list)

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return 0.9 for texts with the word, else 0.1."""
        self.judged += texts
        return [0.9 if self.word in text else 0.1 for text in texts]


@dataclass(slots=True)
class Models:
    """The models that there are; tests change them at will."""

    embedder: HashEmbedder | None = None
    routed: HashEmbedder | None = None
    judge: WordReranker | None = None

    async def local(self) -> HashEmbedder | None:
        """Return the local model."""
        return self.embedder

    async def remote(self) -> HashEmbedder | None:
        """Return the route's model."""
        return self.routed

    async def reranker(self) -> WordReranker | None:
        """Return the reranker."""
        return self.judge
