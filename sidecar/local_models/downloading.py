"""Downloads a model into a staging folder: all of its files, checked."""

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.engine import JobContext
from sidecar.kernel.outbound_http import OutboundHttp
from sidecar.local_models.catalogue import CatalogueModel
from sidecar.local_models.fetching import RETRY_SECONDS, FileFetch
from sidecar.local_models.installed import write_manifest
from sidecar.local_models.structure import wrong_files

PROGRESS_SECONDS: Final = 0.4
# Stays free on the disk whatever is downloaded.
SPARE_BYTES: Final = 64 << 20

FreeSpace = Callable[[Path], int]


def free_space(folder: Path) -> int:
    """Return how many bytes can be written where *folder* lies."""
    return shutil.disk_usage(folder).free


class TransferProgress:
    """Tells how many bytes are there and how fast they come, a few times a second at the most."""

    def __init__(self, ctx: JobContext, phase: str) -> None:
        self._ctx = ctx
        self._phase = phase
        self._told_at = 0.0
        self._told_bytes: int | None = None

    async def reach(self, current: int, total: int | None, *, now: bool = False) -> None:
        """Tell of *current* bytes of *total*, if it is time or *now*."""
        moment = time.monotonic()
        passed = moment - self._told_at
        if not now and passed < PROGRESS_SECONDS:
            return
        speed = None
        if self._told_bytes is not None and passed > 0:
            speed = max(0, round((current - self._told_bytes) / passed))
        self._told_at, self._told_bytes = moment, current
        extra: dict[str, Any] = {"bytes": current, "total": total, "bytes_per_second": speed}
        await self._ctx.progress(self._phase, current, total or 0, extra)


class ModelDownload:
    """The download of one model; *staging* keeps what was fetched for the next attempt."""

    def __init__(
        self,
        model: CatalogueModel,
        staging: Path,
        http: OutboundHttp,
        *,
        token: str | None = None,
        free: FreeSpace = free_space,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._model = model
        self._staging = staging
        self._free = free
        self._fetches = [
            FileFetch(model, file, staging, http, token=token, retry_seconds=retry_seconds)
            for file in model.files
        ]

    @property
    def total(self) -> int | None:
        """The length of all files, None until each is known."""
        sizes = [fetch.total for fetch in self._fetches]
        return None if None in sizes else sum(size or 0 for size in sizes)

    async def run(self, ctx: JobContext) -> int:
        """Fetch and check everything and return how many bytes there are.

        Raises ``MODEL_DOWNLOAD_FAILED``, ``MODEL_HASH_MISMATCH`` or ``DISK_SPACE_INSUFFICIENT``.
        """
        self._staging.mkdir(parents=True, exist_ok=True)
        held = [fetch.held for fetch in self._fetches]
        need = (self.total or self._model.size_bytes) - sum(held)
        if need > 0 and self._free(self._staging) < need + SPARE_BYTES:
            raise ProjectError("DISK_SPACE_INSUFFICIENT", details={"needed_bytes": need})
        progress = TransferProgress(ctx, "downloading")
        await progress.reach(sum(held), self.total, now=True)
        hashes: dict[str, str] = {}
        for index, fetch in enumerate(self._fetches):

            async def told(count: int, index: int = index) -> None:
                held[index] = count
                await progress.reach(sum(held), self.total)

            hashes[self._model.files[index].path] = await fetch.run(told)
            held[index] = fetch.held
        await progress.reach(sum(held), self.total, now=True)
        await asyncio.to_thread(complete_staging, self._model, self._staging, hashes, "download")
        return sum(held)


def complete_staging(
    model: CatalogueModel, staging: Path, hashes: dict[str, str], origin: str
) -> None:
    """Check the structure of the staged files, and add what the program writes itself.

    Raises ``MODEL_HASH_MISMATCH`` and removes the files that are none of the model's.
    """
    wrong = wrong_files(staging, list(hashes))
    if wrong:
        for name in wrong:
            (staging / name).unlink(missing_ok=True)
        raise ProjectError("MODEL_HASH_MISMATCH", details={"files": wrong})
    for name, content in model.written.items():
        known = {"model_version": model.revision} if model.revision != "main" else {}
        path = staging / name
        path.write_text(json.dumps(known | content, ensure_ascii=False, indent=1), encoding="utf-8")
    write_manifest(staging, model.model_id, origin, hashes)
