"""Several workers of one kind, for work that may run side by side."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.processes import own_command
from sidecar.kernel.workers.client import Worker, WorkerPool, WorkerSpec

OnProgress = Callable[[dict[str, Any]], Awaitable[None]]


async def _ignore(_: dict[str, Any]) -> None:
    return


class WorkerGroup:
    """As many workers as requests may run at a time; each is there when it is needed."""

    def __init__(
        self, pool: WorkerPool, name: str, count: int, command: tuple[str, ...] | None = None
    ) -> None:
        """*name* is the worker's in :mod:`sidecar.workers`, unless it is started by another *command*."""
        command = command or tuple(own_command("worker", name))
        self._idle: list[Worker] = [
            pool.add(WorkerSpec(f"{name}-{number}", command)) for number in range(count, 0, -1)
        ]
        self._turns = asyncio.Semaphore(count)

    async def result(
        self,
        method: str,
        params: dict[str, Any],
        *,
        limit_seconds: float,
        on_progress: OnProgress = _ignore,
    ) -> dict[str, Any]:
        """Have *method* run and return its result, once it is this request's turn.

        A cancellation ends the work: when this returns, nothing is computed or written for it any
        more. Raises TimeoutError when the work takes more than *limit_seconds*, or what
        :meth:`Worker.request` raises.
        """
        async with self._turns:
            worker = self._idle.pop()
            try:
                async with asyncio.timeout(limit_seconds):
                    return await self._result(worker, method, params, on_progress)
            finally:
                # The last one that worked is taken first: it has loaded what the work needs.
                self._idle.append(worker)

    @staticmethod
    async def _result(
        worker: Worker, method: str, params: dict[str, Any], on_progress: OnProgress
    ) -> dict[str, Any]:
        messages = worker.request(method, params)
        try:
            async for message in messages:
                data: dict[str, Any] = message["data"]
                if message["type"] == "result":
                    return data
                await on_progress(data)
        finally:
            await messages.aclose()
        raise ProjectError("WORKER_CRASHED")
