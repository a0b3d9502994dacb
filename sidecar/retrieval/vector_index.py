"""The vectors of the open vault's blocks."""

from collections.abc import Awaitable, Callable

from sidecar.kernel.errors import ProjectError

Report = Callable[[int, int], Awaitable[None]]


class VectorIndex:
    """Builds and searches vectors with the embedding model that is installed."""

    async def check_model(self) -> None:
        """Raise ``EMBEDDING_MODEL_UNAVAILABLE`` if there is no model."""
        raise ProjectError("EMBEDDING_MODEL_UNAVAILABLE")

    async def rebuild(self, report: Report) -> None:
        """Build all vectors anew."""
        await self.check_model()
        await report(0, 0)
