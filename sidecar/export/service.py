"""Exports: a note or a text becomes a file that can be downloaded for a day."""

import asyncio
import contextlib
import dataclasses
import importlib.util
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from sidecar.export import store
from sidecar.export.artefacts import Artefact, Artefacts
from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.document import Metadata
from sidecar.export.filenames import file_name
from sidecar.export.limits import ExportLimits
from sidecar.export.output import WrittenFile, put_in_place
from sidecar.export.pdf.support import PdfSupport, pdf_support
from sidecar.export.pictures.assets import AssetLimits, read_assets
from sidecar.export.rendering import RenderingWorkers
from sidecar.export.schemas import ExportFormat, ExportListQuery, ExportRequest, NoteSource
from sidecar.kernel.catalogue import current_locale
from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.engine import JobContext, JobEngine, JobKind, JobOutcome
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import WorkerPool

log = get_logger(__name__)

KIND: Final = "export"
SWEEP_SECONDS: Final = 3600.0
MEBIBYTE: Final = 1024 * 1024

MIME_TYPES: Final[dict[ExportFormat, str]] = {
    "html": "text/html",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
ASSET_LIMITS: Final = AssetLimits(
    count=64, pixels=4_000_000, pixels_in_all=16_000_000, bytes_in_all=8 * MEBIBYTE
)
NO_ASSET_LIMITS: Final = AssetLimits(None, None, None, None)


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """How exports are made and kept. Sizes are in bytes."""

    output_bytes: int = 64 * MEBIBYTE
    resources: int = 64
    picture_bytes: int = 2_000_000
    keep_seconds: float = 24 * 3600.0
    concurrency: int = 2
    limit_seconds: float = 1800.0

    def limits(self, format_: ExportFormat) -> ExportLimits:
        """Return the budgets of a format; PDF has none."""
        if format_ == "pdf":
            return ExportLimits()
        return ExportLimits(
            output_bytes=self.output_bytes,
            resources=self.resources,
            picture_bytes=self.picture_bytes,
            formula_characters=512,
            formula_depth=20,
            plots=64,
            plot_expressions=16,
            plot_nodes=8_000,
        )


class ExportedNote(Protocol):
    """What an export needs of a note."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def content(self) -> str: ...  # noqa: D102
    @property
    def folder(self) -> str: ...  # noqa: D102
    @property
    def tags(self) -> list[str]: ...  # noqa: D102
    @property
    def created_at(self) -> str: ...  # noqa: D102
    @property
    def updated_at(self) -> str: ...  # noqa: D102


class Vault(Protocol):
    """What an export needs of the vault."""

    @property
    def root(self) -> Path | None:
        """The folder of the open vault."""
        ...

    async def get_note(self, note_id: str, /) -> ExportedNote:
        """Return a note with its content, or raise ``RESOURCE_NOT_FOUND``."""
        ...


@dataclass(frozen=True, slots=True)
class _Text:
    markdown: str
    folder: str
    assets: list[dict[str, str]]
    title: str | None = None
    metadata: Metadata | None = None
    is_note: bool = field(default=False)


class ExportService:
    """Creates exports, makes them one after the other, and keeps the files until they expire."""

    def __init__(
        self,
        database: Database,
        jobs: JobEngine,
        vault: Vault,
        paths: DataPaths,
        workers: WorkerPool,
        *,
        font_folders: Sequence[Path] = (),
        settings: ExportSettings | None = None,
    ) -> None:
        """*font_folders* may hold fonts that documents are made with, beside the system's."""
        self._database = database
        self._jobs = jobs
        self._vault = vault
        self._paths = paths
        self._settings = settings or ExportSettings()
        self._font_folders = tuple(font_folders)
        self._rendering = RenderingWorkers(workers, self._settings.concurrency)
        self._artefacts = Artefacts(paths.exports)
        self._sweeping: asyncio.Task[None] | None = None
        jobs.register(
            JobKind(
                name=KIND,
                id_prefix="export",
                run=self._run,
                failure_code="EXPORT_RENDER_FAILED",
                cancelled_code="EXPORT_CANCELLED",
                not_found_code="EXPORT_JOB_NOT_FOUND",
                concurrency=self._settings.concurrency,
                on_end=self._on_end,
            )
        )

    async def start(self) -> None:
        """Begin to remove files that have expired, now and then every hour."""
        self._sweeping = asyncio.create_task(self._sweep_for_ever(), name="export-sweep")

    async def close(self) -> None:
        """Stop removing files, and loading what documents need."""
        await self._rendering.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping

    # -- requests ------------------------------------------------------------------------------

    async def create(self, request: ExportRequest) -> Job:
        """Queue an export.

        Raises ``CAPABILITY_NOT_AVAILABLE`` for a format that can't be made here,
        ``EXPORT_ASSET_INVALID``, ``EXPORT_SOURCE_NOT_FOUND``, and ``VALIDATION_ERROR`` for a path
        that a link leads out of the vault.
        """
        self._rendering.prepare(self._tools(request.format))
        if request.format == "pdf":
            await self.check_pdf()
        elif request.format == "docx" and importlib.util.find_spec("docx") is None:
            raise ProjectError(
                "CAPABILITY_NOT_AVAILABLE", details={"format": "docx", "missing": ["python-docx"]}
            )
        stop = StopSignal()
        limits = NO_ASSET_LIMITS if request.format == "pdf" else ASSET_LIMITS
        assets = await in_thread(stop, read_assets, request.assets, limits, stop)
        if isinstance(request.source, NoteSource):
            await self._note(request.source.note_id)
        elif request.source.file_path is not None:
            await asyncio.to_thread(_check_inside, self._vault.root, request.source.file_path)
        source = request.source.model_dump() | {"assets": assets.to_json()}
        asked = request.model_dump(include={"format", "options", "title"})

        def insert(tx: Transaction) -> Job:
            job = self._jobs.create(tx, KIND, asked, facet=request.format)
            store.put_source(tx, job.job_id, source)
            return job

        return await self._database.write(insert)

    async def check_pdf(self) -> None:
        """Raise ``CAPABILITY_NOT_AVAILABLE`` if what PDF needs isn't installed."""
        support = await asyncio.to_thread(pdf_support)
        if support.missing:
            details = {
                "format": "pdf",
                "missing": list(support.missing),
                "command": support.install_command,
            }
            raise ProjectError("CAPABILITY_NOT_AVAILABLE", details=details)

    @staticmethod
    def pdf_support() -> PdfSupport:
        """Look for what PDF needs here; loads none of it."""
        return pdf_support()

    async def get(self, job_id: str) -> Job:
        """Return an export, or raise ``EXPORT_JOB_NOT_FOUND``."""
        return await self._jobs.get(KIND, job_id)

    async def list(self, query: ExportListQuery) -> tuple[list[Job], int]:
        """Return a page of exports, newest first, and how many match."""
        return await self._jobs.list(KIND, query, status=query.status, facet=query.format)

    async def cancel(self, job_id: str) -> None:
        """Record that an export is to be cancelled; its job tells when it is."""
        await self._jobs.cancel(KIND, job_id)

    def artefact(self, job: Job) -> Artefact | None:
        """Return what is known of the file of a completed export; the file itself may be gone."""
        return self._artefacts.of(job)

    async def download(self, job_id: str) -> Artefact:
        """Return the file of a completed export.

        Raises ``EXPORT_JOB_NOT_FOUND`` while there is none, ``EXPORT_FILE_EXPIRED`` once it is gone.
        """
        artefact = self._artefacts.of(await self.get(job_id))
        if artefact is None:
            raise ProjectError("EXPORT_JOB_NOT_FOUND")
        if artefact.has_expired or not await asyncio.to_thread(artefact.path.is_file):
            raise ProjectError("EXPORT_FILE_EXPIRED", details={"expires_at": artefact.expires_at})
        return artefact

    # -- the work ------------------------------------------------------------------------------

    async def _run(self, context: JobContext) -> JobOutcome:
        job, settings = context.job, self._settings
        source = await self._source(job.job_id)
        given = (job.request["title"] or "").strip() or source.title
        output = self._paths.temporary / self._artefacts.path_of(job).name
        try:
            answer = await self._rendering.export(
                self._request(job, source, given, output), context.progress, settings.limit_seconds
            )
            await context.progress("writing")
            written = WrittenFile(output, answer["size"], answer["sha256"])
            await in_thread(StopSignal(), put_in_place, written, self._artefacts.path_of(job))
        finally:
            _remove(output)
        file = {
            # The first heading of a text that wasn't saved stays in the document alone.
            "file_name": file_name(given, f".{job.request['format']}"),
            "mime_type": MIME_TYPES[job.request["format"]],
            "size": written.size,
            "sha256": written.sha256,
            "keep_seconds": settings.keep_seconds,
        }
        return JobOutcome({"file": file, "warnings": answer["warnings"]})

    def _request(self, job: Job, source: _Text, title: str | None, output: Path) -> dict[str, Any]:
        """Return what the worker is told."""
        metadata = source.metadata
        root = self._vault.root
        return self._tools(job.request["format"]) | {
            "options": job.request["options"],
            "markdown": source.markdown,
            "title": title,
            "metadata": dataclasses.asdict(metadata) if metadata else None,
            "assets": source.assets,
            "vault": str(root) if root else None,
            "folder": source.folder,
            "quote": source.is_note,
            "limits": dataclasses.asdict(self._settings.limits(job.request["format"])),
            "output": str(output),
            "locale": current_locale(),
        }

    def _tools(self, format_: ExportFormat) -> dict[str, Any]:
        """Return what a worker needs to know to load what it works with."""
        return {
            "format": format_,
            "cache": str(self._paths.root / "cache"),
            "font_folders": [str(folder) for folder in self._font_folders],
        }

    async def _source(self, job_id: str) -> _Text:
        source = await self._database.read(lambda conn: store.get_source(conn, job_id))
        if source is None:
            raise ProjectError("EXPORT_SOURCE_NOT_FOUND")
        assets = source["assets"]
        if source["type"] == "markdown":
            folder = (source["file_path"] or "").rpartition("/")[0]
            return _Text(source["markdown"], folder, assets)
        note = await self._note(source["note_id"])
        metadata = Metadata(tuple(note.tags), note.created_at, note.updated_at)
        return _Text(note.content, note.folder, assets, note.title, metadata, is_note=True)

    async def _note(self, note_id: str) -> ExportedNote:
        try:
            return await self._vault.get_note(note_id)
        except ProjectError as error:
            if error.code == "RESOURCE_NOT_FOUND":
                raise ProjectError("EXPORT_SOURCE_NOT_FOUND") from error
            raise

    def _on_end(self, tx: Transaction, job: Job) -> None:
        store.forget_source(tx, job.job_id)
        if job.status != "completed":
            # A cancel can win after the file was put in place.
            tx.after_commit(lambda: _remove(self._artefacts.path_of(job)))

    # -- expiry --------------------------------------------------------------------------------

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.sweep()
            except (OSError, sqlite3.Error) as error:
                log.warning("export.sweep_failed", extra={"reason": type(error).__name__})
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Remove the files that have expired or belong to no export; return how many."""
        removed = 0
        for job_id, path in await asyncio.to_thread(self._artefacts.stored):
            if not await self._is_kept(job_id):
                await asyncio.to_thread(_remove, path)
                removed += 1
        return removed

    async def _is_kept(self, job_id: str) -> bool:
        try:
            job = await self.get(job_id)
        except ProjectError:  # There is no such job.
            return False
        artefact = self._artefacts.of(job)
        return not job.is_terminal if artefact is None else not artefact.has_expired


def _remove(path: Path) -> None:
    """Remove a file; what can't be removed now is left to the next sweep."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("export.file_not_removed", extra={"reason": type(error).__name__})


def _check_inside(root: Path | None, file_path: str) -> None:
    """Raise ``VALIDATION_ERROR`` if a relative path, its links followed, leaves the vault."""
    if root is None:
        return
    try:
        inside = (root / file_path).resolve().is_relative_to(root.resolve())
    except OSError:
        inside = False
    if not inside:
        reason = "The path must stay inside the vault."
        error = {"loc": ["body", "source", "markdown", "file_path"], "message": reason}
        raise ProjectError("VALIDATION_ERROR", details={"errors": [error]})
