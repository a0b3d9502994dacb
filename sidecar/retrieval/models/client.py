"""Asks the worker of embedding models and rerankers, and notes how that went."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.client import Worker
from sidecar.local_models.service import Attempt, ModelUse
from sidecar.retrieval.models.description import ModelDescription

# Batches that follow one another are one attempt; it ends when none has come for so long.
PAUSE_SECONDS: Final = 5.0
# One that goes on is noted anew after so long, so that a log shows it while it runs.
LONGEST_MS: Final = 60_000
UNAVAILABLE: Final = "EMBEDDING_MODEL_UNAVAILABLE"
_WORKER_FAILURES: Final = ("WORKER_CRASHED", "WORKER_TIMEOUT", "INTERNAL_ERROR")

Note = Callable[[Attempt], None]
"""Keeps an attempt; is called on the event loop's thread and must not wait."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked of a model. A part of a *series* isn't noted by itself."""

    purpose: str
    method: str
    params: dict[str, Any]
    series: bool = False


class ModelWorker:
    """The worker, with the models that it uses counted and its work noted."""

    def __init__(self, worker: Worker, note: Note) -> None:
        self._worker = worker
        self._note = note
        self._use = ModelUse()
        self._series: dict[str, Attempt] = {}
        self._pause: asyncio.TimerHandle | None = None

    def folders_at_work(self) -> set[Path]:
        """Return the folders of the models that answer a request right now."""
        return self._use.folders()

    async def ask(self, description: ModelDescription, work: Work) -> dict[str, Any]:
        """Return the worker's answer; raises ``EMBEDDING_MODEL_UNAVAILABLE`` if it has none."""
        attempt = Attempt(
            "call",
            work.purpose,
            "cancelled",
            model_id=description.model_id,
            requested_device="cpu",
        )
        began = time.monotonic()
        try:
            with self._use.of(folder_of(description)):
                answer = await self._answer(work, description)
            spent = round(1000 * (time.monotonic() - began)) - (answer["load_ms"] or 0)
            attempt = replace(
                attempt,
                status="completed",
                actual_device="cpu",
                load_ms=answer["load_ms"],
                duration_ms=max(0, spent),
            )
            return answer
        except ProjectError as error:
            attempt = replace(attempt, status="failed", error_code=error.code)
            raise
        finally:
            self._keep(attempt, series=work.series)

    async def _answer(self, work: Work, description: ModelDescription) -> dict[str, Any]:
        params = {"model": description.to_params(), **work.params}
        try:
            async for message in self._worker.request(work.method, params):
                if message["type"] == "result":
                    data: dict[str, Any] = message["data"]
                    return data
        except ProjectError as error:
            if error.code in _WORKER_FAILURES:
                raise ProjectError(UNAVAILABLE) from error
            raise
        raise ProjectError(UNAVAILABLE)

    # -- noting --------------------------------------------------------------------------------

    def _keep(self, attempt: Attempt, *, series: bool) -> None:
        if not series or attempt.status != "completed":
            self._note(attempt)
            return
        name = str(attempt.model_id)
        former = self._series.get(name)
        if former is not None:
            attempt = replace(
                attempt,
                load_ms=former.load_ms if attempt.load_ms is None else attempt.load_ms,
                duration_ms=(former.duration_ms or 0) + (attempt.duration_ms or 0),
            )
        self._series[name] = attempt
        if (attempt.duration_ms or 0) >= LONGEST_MS:
            self._end_series()
        if self._pause is not None:
            self._pause.cancel()
        self._pause = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._end_series)

    def _end_series(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        ended, self._series = list(self._series.values()), {}
        for attempt in ended:
            self._note(attempt)


def folder_of(description: ModelDescription) -> Path:
    """Return where the model lies."""
    return Path(description.tokenizer_file).parent
