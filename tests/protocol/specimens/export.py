"""Requests of exports."""

from typing import Any

from tests.protocol.live import AppClients, LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import JobSpecimen, Request, Specimen

CREATE = "POST /api/exports"


def _create(_: AppClients) -> Request:
    return Request(
        json={"source": {"type": "markdown", "markdown": "# 标题\n\ntext"}, "format": "html"}
    )


def new_export(app: LiveApp) -> str:
    """Ask for an export and return its id."""
    answer = _create(app).send(app.session, BY_NAME[CREATE]).raise_for_status()
    job_id: str = answer.json()["job_id"]
    return job_id


def exported(app: LiveApp) -> str:
    """Return the id of an export that is completed."""

    def make(app: LiveApp) -> dict[str, Any]:
        job = app.job_ended(f"/api/exports/{new_export(app)}")
        assert job["status"] == "completed", job
        return job

    job_id: str = app.once("completed export", make)["job_id"]
    return job_id


def _done(app: LiveApp) -> Request:
    return Request(path={"job_id": exported(app)})


def _running(app: LiveApp) -> Request:
    job_id = app.held_job("export", lambda: _create(app).send(app.session, BY_NAME[CREATE]))
    return Request(path={"job_id": job_id})


def _ticket(app: LiveApp) -> Request:
    return Request(json={"path": f"/api/exports/{exported(app)}/file"})


OPERATIONS = {
    CREATE: Specimen(202, _create),
    "GET /api/exports": Specimen(200),
    "GET /api/exports/{job_id}": Specimen(200, _done),
    "POST /api/exports/{job_id}/cancel": Specimen(202, _running),
    "GET /api/exports/{job_id}/file": Specimen(200, _done),
    "POST /api/tickets": Specimen(201, _ticket),
}

JOBS = {"export": JobSpecimen("/api/exports", _create)}
