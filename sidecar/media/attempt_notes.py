"""What is known of the local model's part in each running job, until the job ends and it is noted."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sidecar.kernel.database import Transaction
from sidecar.kernel.job_store import Job
from sidecar.local_models.service import Attempt, AttemptLog

# Recognition runs on the processor until a runtime offers more.
REQUESTED_DEVICE: Final = "cpu"


@dataclass(frozen=True, slots=True)
class _Facts:
    folder: Path
    device: str | None = None
    load_ms: int | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def duration_ms(self) -> int | None:
        """How long the inference took, None if it never began."""
        if self.began is None:
            return None
        return round(1000 * ((self.ended or time.monotonic()) - self.began))


class AttemptNotes:
    """The facts of the jobs of one purpose."""

    def __init__(self, purpose: str, attempts: AttemptLog) -> None:
        self._purpose = purpose
        self._attempts = attempts
        self._facts: dict[str, _Facts] = {}

    def chosen(self, job_id: str, folder: Path) -> None:
        """Note which model a job takes."""
        self._facts[job_id] = _Facts(folder)

    def started(self, job_id: str, device: str, load_ms: int | None) -> None:
        """Note that the inference begins, and on which device."""
        self._facts[job_id] = replace(
            self._facts[job_id], device=device, load_ms=load_ms, began=time.monotonic()
        )

    def stopped(self, job_id: str) -> None:
        """Note that the inference is over, whatever the job still does."""
        self._facts[job_id] = replace(self._facts[job_id], ended=time.monotonic())

    def folders(self) -> set[Path]:
        """Return the folders of the models that are at work."""
        return {facts.folder for facts in list(self._facts.values())}

    def write(self, tx: Transaction, job: Job) -> None:
        """Write down the attempt in the transaction that ends its job."""
        facts = self._facts.get(job.job_id)
        attempt = Attempt(
            "call",
            self._purpose,
            job.status,
            model_id=facts.folder.name if facts else None,
            requested_device=REQUESTED_DEVICE,
            actual_device=facts.device if facts else None,
            load_ms=facts.load_ms if facts else None,
            duration_ms=facts.duration_ms if facts else None,
            error_code=job.error_code,
        )
        self._attempts.add(tx, attempt)
        tx.after_commit(lambda: self._forget(job.job_id))

    def _forget(self, job_id: str) -> None:
        self._facts.pop(job_id, None)
