"""What search needs of an embedding model, whatever runs it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sidecar.kernel.errors import ProjectError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

Normalization = Literal["l2", "none"]
Source = Literal["local", "api"]


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What vectors must have in common to be compared with each other."""

    model_id: str
    model_version: str
    dimension: int
    normalization: Normalization
    source: Source = "local"
    route: str = ""
    """Which provider and path a remote model is reached by."""

    def describe(self) -> dict[str, Any]:
        """Return what a client is told of it."""
        return {
            "model_id": self.model_id,
            "model_version": self.model_version,
            "dimension": self.dimension,
            "normalization": self.normalization,
            "source": self.source,
        }


class Embedder(Protocol):
    """Turns texts into vectors. Both methods return one row a text, and raise project errors."""

    @property
    def space(self) -> VectorSpace:
        """The space of its vectors."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors of what is looked for."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors of what is found."""
        ...


class Reranker(Protocol):
    """Judges how well texts answer a query."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text; higher is better, from 0 to 1."""
        ...


class ModelSource(Protocol):
    """Says which models there are at this moment."""

    async def local(self) -> Embedder | None:
        """Return the installed embedding model, if there is one."""
        ...

    async def remote(self) -> Embedder | None:
        """Return the embedding model of the route that is set, if one is."""
        ...

    async def reranker(self) -> Reranker | None:
        """Return the installed reranker, if there is one."""
        ...


def checked(space: VectorSpace, vectors: "Vectors", count: int) -> "Vectors":
    """Return *vectors* if they are as declared, of length 1 where the space says so.

    Raises ``EMBEDDING_DIMENSION_MISMATCH`` otherwise: such vectors are neither stored nor compared.
    """
    import numpy as np  # noqa: PLC0415 - heavy

    found = np.asarray(vectors, dtype=np.float32)
    if found.shape != (count, space.dimension) or not np.isfinite(found).all():
        given = found.shape[-1] if found.ndim else 0
        raise ProjectError(
            "EMBEDDING_DIMENSION_MISMATCH",
            details={"expected_dimension": space.dimension, "dimension": int(given)},
        )
    if space.normalization == "l2":
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        found = found / np.maximum(lengths, 1e-12)
    return found
