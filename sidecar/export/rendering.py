"""The server's side of the worker processes that make documents."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.client import WorkerPool
from sidecar.kernel.workers.group import WorkerGroup

LOAD_SECONDS: Final = 60.0

OnProgress = Callable[[str, int, int], Awaitable[None]]


class RenderingWorkers:
    """As many workers as documents may be made at a time."""

    def __init__(self, pool: WorkerPool, count: int) -> None:
        self._workers = WorkerGroup(pool, "export", count)
        self._loading: asyncio.Task[None] | None = None

    def prepare(self, request: dict[str, Any]) -> None:
        """Have a worker load what a document needs, while there is something else to do before it.

        *request* has ``format``, ``font_folders`` and ``cache``, as in :meth:`export`.
        """
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load(request), name="export-load")

    async def _load(self, request: dict[str, Any]) -> None:
        # What goes wrong here goes wrong again with the document, which then tells of it.
        with contextlib.suppress(ProjectError, TimeoutError):
            await self._workers.result("load", request, limit_seconds=LOAD_SECONDS)

    async def close(self) -> None:
        """Stop loading."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait({self._loading})

    async def export(
        self, request: dict[str, Any], on_progress: OnProgress, limit_seconds: float
    ) -> dict[str, Any]:
        """Have a document made and return the worker's answer.

        A cancellation ends the work: when this returns, nothing is computed or written for it any
        more. Raises ``EXPORT_RENDER_FAILED`` when *limit_seconds* are over, or what the worker raises.
        """

        async def told(data: dict[str, Any]) -> None:
            await on_progress(data["phase"], data["current"], data["total"])

        if self._loading is not None:
            await asyncio.wait({self._loading})
        try:
            return await self._workers.result(
                "export", request, limit_seconds=limit_seconds, on_progress=told
            )
        except TimeoutError as error:
            raise ProjectError("EXPORT_RENDER_FAILED") from error
