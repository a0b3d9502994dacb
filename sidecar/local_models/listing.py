"""How local models are shown: what is known of each, and of what was done with it last."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sidecar.kernel.catalogue import localise
from sidecar.kernel.database import Readable
from sidecar.kernel.errors import ErrorBody
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.store import Job
from sidecar.local_models import store
from sidecar.local_models.library import Known
from sidecar.local_models.model_jobs import VERIFICATION_KIND
from sidecar.local_models.schemas import LocalModel, ModelProgress, ModelStatus


@dataclass(frozen=True, slots=True)
class NewestJobs:
    """What was done with a model last; None for what never was."""

    transfer: Job | None = None
    verification: Job | None = None


NO_JOBS: Final = NewestJobs()


def newest_jobs(conn: Readable) -> dict[str, NewestJobs]:
    """Return the newest jobs of each model that had one."""
    found: dict[str, NewestJobs] = {}
    for known in store.jobs(conn):
        job = job_store.get(conn, known.kind, known.job_id)
        field = "verification" if known.kind == VERIFICATION_KIND else "transfer"
        if job is not None:
            found[known.model_id] = replace(found.get(known.model_id, NO_JOBS), **{field: job})
    return found


def shown(known: Known, jobs: NewestJobs, used: set[Path]) -> LocalModel:
    """Return a model with its newest jobs, given the folders that are in use."""
    entry = known.entry
    return LocalModel(
        model_id=known.model_id,
        display_name=entry.display_name if entry else known.model_id,
        purpose=known.purpose,
        status=_status(known, jobs.transfer),
        disk_bytes=known.disk_bytes,
        download=_progress(jobs.transfer),
        verification=_progress(jobs.verification),
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


def _status(known: Known, transfer: Job | None) -> ModelStatus:
    if transfer is not None and not transfer.is_terminal:
        return "downloading"
    if known.folder is None:
        return "not_installed"
    return "damaged" if known.damaged else "installed"


def _progress(job: Job | None) -> ModelProgress | None:
    if job is None:
        return None
    progress, error = job.progress or {}, job.error
    return ModelProgress(
        status=job.status,
        bytes=progress.get("bytes", 0),
        total=progress.get("total"),
        error=ErrorBody(**localise(error.body()["error"])) if error else None,
    )
