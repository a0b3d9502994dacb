"""The finished files of exports: where they lie, how long they are kept."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.clock import format_utc, parse_utc
from sidecar.kernel.jobs.store import Job

_OURS: Final = re.compile(r"(?P<job_id>export_[0-9a-z]+)\.(html|pdf|docx)")


@dataclass(frozen=True, slots=True)
class Artefact:
    """The file of a completed job."""

    path: Path
    file_name: str
    mime_type: str
    size: int
    sha256: str
    expires_at: str

    @property
    def has_expired(self) -> bool:
        """Whether the file isn't to be given out any more."""
        return datetime.now(UTC) >= parse_utc(self.expires_at)


class Artefacts:
    """The folder of finished files. A file's name there is its job's id and its format."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path_of(self, job: Job) -> Path:
        """Return where the file of *job* lies, or will lie."""
        return self._folder / f"{job.job_id}.{job.request['format']}"

    def of(self, job: Job) -> Artefact | None:
        """Return the file of a completed job, None for any other."""
        if job.status != "completed" or job.result is None or job.completed_at is None:
            return None
        file: dict[str, Any] = job.result["file"]
        expires = parse_utc(job.completed_at) + timedelta(seconds=file["keep_seconds"])
        return Artefact(
            path=self.path_of(job),
            file_name=file["file_name"],
            mime_type=file["mime_type"],
            size=file["size"],
            sha256=file["sha256"],
            expires_at=format_utc(expires),
        )

    def stored(self) -> list[tuple[str, Path]]:
        """Return the files that lie in the folder, each with the id of its job."""
        return [
            (match["job_id"], path)
            for path in self._folder.iterdir()
            if (match := _OURS.fullmatch(path.name))
        ]
