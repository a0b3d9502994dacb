"""Whether a local model is at work, or about to be."""

from collections.abc import Awaitable, Callable
from typing import Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.engine import JobEngine
from sidecar.kernel.paging import PageQuery

TRANSCRIPTION: Final = "transcription"
INDEX_REBUILD: Final = "index_rebuild"


class LocalInference:
    """Asks the jobs engine; a rebuild of the index counts if there is a model to embed with."""

    def __init__(self, jobs: JobEngine, check_embedding: Callable[[], Awaitable[None]]) -> None:
        self._jobs = jobs
        self._check_embedding = check_embedding
        self._at_work: list[Callable[[], bool]] = []

    def watch(self, at_work: Callable[[], bool]) -> None:
        """Count also what is no job: *at_work* tells whether it runs right now."""
        self._at_work.append(at_work)

    async def in_use(self) -> bool:
        """Whether an inference runs or is queued."""
        if any(at_work() for at_work in self._at_work):
            return True
        if await self._any_unfinished(TRANSCRIPTION):
            return True
        return await self._any_unfinished(INDEX_REBUILD) and await self._can_embed()

    async def index_in_work(self) -> bool:
        """Whether a rebuild of the index runs or is queued."""
        return await self._any_unfinished(INDEX_REBUILD)

    async def _any_unfinished(self, kind: str) -> bool:
        for status in ("running", "queued"):
            _, total = await self._jobs.list(kind, PageQuery(limit=1), status=status)
            if total:
                return True
        return False

    async def _can_embed(self) -> bool:
        try:
            await self._check_embedding()
        except ProjectError:
            return False
        return True
