"""The server's side of the worker processes that make documents."""

from collections.abc import Awaitable, Callable
from typing import Any

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.worker_group import WorkerGroup
from sidecar.kernel.workers import WorkerPool

OnProgress = Callable[[str, int, int], Awaitable[None]]


class RenderingWorkers:
    """As many workers as documents may be made at a time."""

    def __init__(self, pool: WorkerPool, count: int) -> None:
        self._workers = WorkerGroup(pool, "export", count)

    async def export(
        self, request: dict[str, Any], on_progress: OnProgress, limit_seconds: float
    ) -> dict[str, Any]:
        """Have a document made and return the worker's answer.

        A cancellation ends the work: when this returns, nothing is computed or written for it any
        more. Raises ``EXPORT_RENDER_FAILED`` when *limit_seconds* are over, or what the worker raises.
        """

        async def told(data: dict[str, Any]) -> None:
            await on_progress(data["phase"], data["current"], data["total"])

        try:
            return await self._workers.result(
                "export", request, limit_seconds=limit_seconds, on_progress=told
            )
        except TimeoutError as error:
            raise ProjectError("EXPORT_RENDER_FAILED") from error
