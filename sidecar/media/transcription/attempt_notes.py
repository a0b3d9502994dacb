"""What is known of the local model's part in each running job, until the job ends and it is noted."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from sidecar.kernel.database import Transaction
from sidecar.kernel.jobs.store import Job
from sidecar.local_models.service import Attempt, AttemptLog


@dataclass(frozen=True, slots=True)
class _Facts:
    folder: Path
    requested: str
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
        self._fallbacks: dict[str, list[str]] = {}
        self._left: set[str] = set()

    def chosen(self, job_id: str, folder: Path, device: str) -> None:
        """Note which model a job takes, and the device that it is to run on."""
        self._facts[job_id] = _Facts(folder, device)

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

    def fell_back(self, job_id: str, reason: str) -> None:
        """Note that something better was tried before, and why it did not work."""
        self._fallbacks.setdefault(job_id, []).append(reason)

    def left_to_provider(self, job_id: str) -> None:
        """Note that no local model has a part in the job."""
        self._left.add(job_id)

    def write(self, tx: Transaction, job: Job) -> None:
        """Write down the attempt in the transaction that ends its job."""
        self.ended(tx, job.job_id, job.status, job.error_code)

    def ended(self, tx: Transaction, job_id: str, status: str, error_code: str | None) -> None:
        """Write down how work that is no job of the engine ended."""
        facts = self._facts.get(job_id)
        model_id = facts.folder.name if facts else None
        requested = facts.requested if facts else None
        for reason in self._fallbacks.get(job_id, ()):
            self._attempts.add(
                tx,
                Attempt(
                    "fallback",
                    self._purpose,
                    status,
                    model_id=model_id,
                    requested_device=requested,
                    fallback_reason=reason,
                ),
            )
        if job_id not in self._left:
            attempt = Attempt(
                "call",
                self._purpose,
                status,
                model_id=model_id,
                requested_device=requested,
                actual_device=facts.device if facts else None,
                load_ms=facts.load_ms if facts else None,
                duration_ms=facts.duration_ms if facts else None,
                error_code=error_code,
            )
            self._attempts.add(tx, attempt)
        tx.after_commit(lambda: self._forget(job_id))

    def _forget(self, job_id: str) -> None:
        self._facts.pop(job_id, None)
        self._fallbacks.pop(job_id, None)
        self._left.discard(job_id)
