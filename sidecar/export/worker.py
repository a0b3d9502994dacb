"""The worker process that makes documents: ``sidecar worker export``.

A process of its own, because laying out pages can't be interrupted, takes memory that only the end of
a process gives back, and must not hold up what else the server does.
"""

import asyncio
import gc
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from sidecar.export.cancellation import Stopped, StopSignal
from sidecar.export.exporter import ExportResult
from sidecar.export.pipeline import Pipeline
from sidecar.kernel.catalogue import set_default_locale
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.process import Task, WorkCancelled, WorkerServer, WorkFailed

_LOOKS_FOR_GARBAGE: Final = (50_000, 20, 20)


class _TaskStop(StopSignal):
    """Stops when the server cancels the request."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task

    def check(self) -> None:
        if self._task.cancelled.is_set():
            self.set()
        super().check()


class _Exports:
    def __init__(self) -> None:
        self._pipeline: Pipeline | None = None

    def load(self, params: dict[str, Any], task: Task) -> dict[str, Any]:  # noqa: ARG002 - as it is called
        """Load what documents of a format need, so that the next one begins at once."""
        self._pipeline_of(params).load(params["format"])
        return {}

    def export(self, params: dict[str, Any], task: Task) -> dict[str, Any]:
        """Make a document. The result has its ``size``, ``sha256`` and ``warnings``."""
        set_default_locale(params["locale"])
        pipeline = self._pipeline_of(params)

        async def progress(phase: str, current: int, total: int) -> None:
            task.progress({"phase": phase, "current": current, "total": total})

        try:
            result = asyncio.run(pipeline.run(params, _TaskStop(task), progress))
        except Stopped as error:
            raise WorkCancelled from error
        except ProjectError as error:
            raise WorkFailed(error.code) from error
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a library raises fails this one document
            # What a library says may quote the document, which no log may hold.
            where = traceback.extract_tb(error.__traceback__)[-1]
            sys.stderr.write(f"{type(error).__name__} at {where.filename}:{where.lineno}\n")
            raise WorkFailed("EXPORT_RENDER_FAILED") from None
        return _answer(result)

    def _pipeline_of(self, params: dict[str, Any]) -> Pipeline:
        if self._pipeline is None:
            folders = tuple(Path(folder) for folder in params["font_folders"])
            self._pipeline = Pipeline(folders, Path(params["cache"]))
        return self._pipeline


def _answer(result: ExportResult) -> dict[str, Any]:
    return {
        "size": result.file.size,
        "sha256": result.file.sha256,
        "warnings": [warning.to_json() for warning in result.warnings],
    }


def main() -> None:
    """Serve until stdin ends."""
    # Nearly all that is made for a document stays until the document is done: to look for garbage
    # every few hundred objects, as usual, took a fifth of the time. It is cleared away between documents.
    gc.set_threshold(*_LOOKS_FOR_GARBAGE)
    exports = _Exports()
    methods = {"export": exports.export, "load": exports.load}
    WorkerServer(methods, between=gc.collect).run()
