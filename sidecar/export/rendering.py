"""The server's side of the worker processes that make documents."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.processes import own_command
from sidecar.kernel.workers import Worker, WorkerPool, WorkerSpec

IDLE_SECONDS: Final = 120.0

OnProgress = Callable[[str, int, int], Awaitable[None]]


class RenderingWorkers:
    """As many workers as documents may be made at a time; each is there when it is needed."""

    def __init__(self, pool: WorkerPool, count: int) -> None:
        command = tuple(own_command("worker", "export"))
        self._idle: list[Worker] = [
            pool.add(WorkerSpec(f"export-{number}", command, idle_seconds=IDLE_SECONDS))
            for number in range(count, 0, -1)
        ]
        self._turns = asyncio.Semaphore(count)

    async def export(
        self, request: dict[str, Any], on_progress: OnProgress, limit_seconds: float
    ) -> dict[str, Any]:
        """Have a document made and return the worker's answer.

        A cancellation ends the work: when this returns, nothing is computed or written for it any
        more. Raises ``EXPORT_RENDER_FAILED`` when *limit_seconds* are over, or what the worker raises.
        """
        async with self._turns:
            worker = self._idle.pop()
            try:
                async with asyncio.timeout(limit_seconds):
                    return await self._result(worker, request, on_progress)
            except TimeoutError as error:
                raise ProjectError("EXPORT_RENDER_FAILED") from error
            finally:
                # The last one that worked is taken first: it has loaded what documents need.
                self._idle.append(worker)

    async def _result(
        self, worker: Worker, request: dict[str, Any], on_progress: OnProgress
    ) -> dict[str, Any]:
        messages = worker.request("export", request)
        try:
            async for message in messages:
                data: dict[str, Any] = message["data"]
                if message["type"] == "result":
                    return data
                await on_progress(data["phase"], data["current"], data["total"])
        finally:
            await messages.aclose()
        raise ProjectError("WORKER_CRASHED")
