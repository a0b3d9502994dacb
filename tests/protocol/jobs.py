"""Jobs of whatever kind, through their paths."""

from dataclasses import dataclass
from typing import Any

import httpx

from sidecar.kernel.jobs.engine import JobOutcome
from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens import JOBS, JobSpecimen, Request

PROGRESS_KEYS = {"phase", "current", "total", "percent", "message"}


@dataclass(frozen=True)
class Jobs:
    """The jobs of one kind in a running application."""

    app: LiveApp
    kind: str

    @property
    def specimen(self) -> JobSpecimen:
        """Where they live."""
        return JOBS[self.kind]

    @property
    def has_stream(self) -> bool:
        """Whether their events can be followed."""
        return f"GET {self.specimen.collection}/{{job_id}}/events" in BY_NAME

    def request(self, request: Request | None = None) -> httpx.Response:
        """Ask for a job."""
        name = f"POST {self.specimen.collection}"
        wanted = request or self.specimen.create(self.app)
        return wanted.send(self.app.session, BY_NAME[name])

    def new(self, request: Request | None = None) -> dict[str, Any]:
        """Make a job and return it as it was answered."""
        answer = self.request(request)
        assert answer.status_code == 202, answer.text
        job: dict[str, Any] = answer.json()
        return job

    def path(self, job_id: str) -> str:
        """The path of a job."""
        return f"{self.specimen.collection}/{job_id}"

    def events_path(self, job_id: str) -> str:
        """The path of a job's events."""
        return f"{self.path(job_id)}/events"

    def get(self, job_id: str) -> dict[str, Any]:
        """Read a job."""
        job: dict[str, Any] = self.app.session.get(self.path(job_id)).raise_for_status().json()
        return job

    def cancel(self, job_id: str) -> httpx.Response:
        """Ask for a job's end."""
        return self.app.session.post(f"{self.path(job_id)}/cancel")

    def ended(self, job_id: str) -> dict[str, Any]:
        """Wait for a job's end and return it."""
        return self.app.job_ended(self.path(job_id))

    def completed(self) -> dict[str, Any]:
        """Return a job that did its real work."""

        def make(_: LiveApp) -> dict[str, Any]:
            job = self.ended(self.new()["job_id"])
            assert job["status"] == "completed", job
            return job

        return self.app.once(f"completed {self.kind}", make)

    def outcome(self) -> JobOutcome:
        """Return what the real work left, for a job that is to leave the same without the work."""
        job_id = self.completed()["job_id"]
        stored = self.app.call(self.app.services.jobs.get(self.kind, job_id))
        assert stored.result is not None
        return JobOutcome(stored.result)

    def stored_events(self, job_id: str) -> list[Any]:
        """Every stored event of a job, whether or not the kind has a stream."""
        found, more = self.app.call(self.app.services.events.page(job_id, 0, 10_000))
        assert not more
        return found
