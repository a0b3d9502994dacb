"""How local models are shown: what is known of each, and of its newest download or import."""

from pathlib import Path

from sidecar.kernel.catalogue import localise
from sidecar.kernel.database import Readable
from sidecar.kernel.errors import ErrorBody
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.store import Job
from sidecar.local_models import store
from sidecar.local_models.library import Known
from sidecar.local_models.schemas import LocalModel, ModelStatus, ModelTransfer


def newest_transfers(conn: Readable) -> dict[str, Job]:
    """Return the newest download or import of each model."""
    jobs = (
        (transfer.model_id, job_store.get(conn, transfer.kind, transfer.job_id))
        for transfer in store.transfers(conn)
    )
    return {model_id: job for model_id, job in jobs if job is not None}


def shown(known: Known, job: Job | None, used: set[Path]) -> LocalModel:
    """Return a model with its newest transfer, given the folders that are in use."""
    entry = known.entry
    return LocalModel(
        model_id=known.model_id,
        display_name=entry.display_name if entry else known.model_id,
        purpose=known.purpose,
        status=_status(known, job),
        disk_bytes=known.disk_bytes,
        download=_transfer(job) if job else None,
        in_use=known.folder is not None and known.folder in used,
        removable=known.removable,
        download_bytes=entry.size_bytes if entry else None,
        hashes_known=entry is not None and all(file.sha256 for file in entry.files),
        languages=list(entry.languages) if entry else [],
        licence=entry.licence if entry else None,
        recommended=entry is not None and entry.recommended,
        gated=entry is not None and entry.gated,
        page_url=entry.page if entry else None,
        runtime=entry.runtime if entry else "bundled",
    )


def _status(known: Known, job: Job | None) -> ModelStatus:
    if job is not None and not job.is_terminal:
        return "downloading"
    if known.folder is None:
        return "not_installed"
    return "damaged" if known.damaged else "installed"


def _transfer(job: Job) -> ModelTransfer:
    progress, error = job.progress or {}, job.error
    return ModelTransfer(
        status=job.status,
        bytes=progress.get("bytes", 0),
        total=progress.get("total"),
        error=ErrorBody(**localise(error.body()["error"])) if error else None,
    )
