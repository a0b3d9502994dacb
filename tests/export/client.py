"""What a client of the export paths does."""

import asyncio
from typing import Any

from tests.app_client import RunningApp
from tests.export.needs import need_pdf

TERMINAL = ("completed", "failed", "cancelled")
WAIT_SECONDS = 60.0


def markdown_request(markdown: str, **more: Any) -> dict[str, Any]:
    """Return the body of a request for the HTML of a text."""
    return {"source": {"type": "markdown", "markdown": markdown}, "format": "html", **more}


async def create(app: RunningApp, body: dict[str, Any]) -> str:
    """Create an export and return its id."""
    if body.get("format") == "pdf":
        need_pdf()
    response = await app.http.post("/api/exports", json=body)
    assert response.status_code == 202, response.text
    job_id: str = response.json()["job_id"]
    return job_id


async def read(app: RunningApp, job_id: str) -> dict[str, Any]:
    """Return a job."""
    response = await app.http.get(f"/api/exports/{job_id}")
    assert response.status_code == 200, response.text
    job: dict[str, Any] = response.json()
    return job


async def ended(app: RunningApp, job_id: str) -> dict[str, Any]:
    """Wait for the end of a job and return it."""

    async def follow() -> None:
        async for _ in app.services.events.subscribe(job_id):
            pass

    await asyncio.wait_for(follow(), WAIT_SECONDS)
    job = await read(app, job_id)
    assert job["status"] in TERMINAL
    return job


async def works(app: RunningApp, job_id: str) -> None:
    """Wait until a job tells of its first progress."""

    async def follow() -> None:
        async for batch in app.services.events.subscribe(job_id):
            if any(event.event == "Progress" for event in batch):
                return
        raise AssertionError("the job ended first")

    await asyncio.wait_for(follow(), WAIT_SECONDS)


async def export(app: RunningApp, body: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Export, and return the completed job and its file."""
    job = await ended(app, await create(app, body))
    assert job["status"] == "completed", job
    response = await app.http.get(f"/api/exports/{job['job_id']}/file")
    assert response.status_code == 200, response.text
    return job, response.content


async def error_of(app: RunningApp, body: Any) -> tuple[int, str, dict[str, Any]]:
    """Post a request that is refused and return status, code and details; no job may come of it."""
    before = (await app.http.get("/api/exports")).json()["page"]["total"]
    response = await app.http.post("/api/exports", json=body)
    error = response.json()["error"]
    assert error.keys() == {"code", "message", "details"}
    assert (await app.http.get("/api/exports")).json()["page"]["total"] == before
    return response.status_code, error["code"], error["details"]
