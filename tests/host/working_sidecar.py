"""A sidecar with one more domain: work of the test's own, in real worker processes.

``POST /host/trial/work`` starts a worker that has a child of its own and that never finishes; it
answers once both run. The rest is the product as it is.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

import sidecar.app as product
import sidecar.services as wiring
from sidecar.cli import main
from sidecar.kernel.catalogue import Localised
from sidecar.kernel.database import Transaction
from sidecar.kernel.http.sse import resource_stream
from sidecar.kernel.jobs.engine import JobContext, JobKind, JobOutcome
from sidecar.kernel.settings import Settings
from sidecar.kernel.workers.client import WorkerSpec
from sidecar.services import Services

SCRIPT = Path(__file__).with_name("stubborn_worker.py")
FOLLOWED = "trial_followed"


class Work(BaseModel):
    """What kind of worker is wanted."""

    ignore_signals: bool


class Started(BaseModel):
    """Which worker runs now."""

    worker_pid: int
    child_pid: int
    job_id: str


def _register(services: Services) -> None:
    async def run(context: JobContext) -> JobOutcome:
        mode = "stubborn" if context.job.request["ignore_signals"] else "plain"
        worker = services.workers.add(
            WorkerSpec(f"trial-{mode}", command=(sys.executable, str(SCRIPT), mode))
        )
        async for message in worker.request("work", {}):
            if message["type"] == "progress":
                await context.emit("Working", message["data"])
        return JobOutcome({})

    services.jobs.register(
        JobKind(
            "trial",
            "trial",
            run,
            failure_code="INTERNAL_ERROR",
            cancelled_code="JOB_CANCELLED",
            concurrency=4,
        )
    )


def _add_work(api: FastAPI, services: Services) -> None:
    @api.post("/host/trial/work", status_code=201)
    async def work(request: Work) -> Started:
        def create(tx: Transaction) -> str:
            return services.jobs.create(tx, "trial", request.model_dump()).job_id

        job_id = await services.database.write(create)
        async for batch in services.events.subscribe(job_id):
            for event in batch:
                if event.event == "Working":
                    return Started(job_id=job_id, **event.data)
        raise AssertionError("the worker ended")

    @api.get("/host/trial/jobs/{job_id}")
    async def job(job_id: str) -> dict[str, Any]:
        found = await services.jobs.get("trial", job_id)
        return {"status": found.status, "starts": found.starts, "error_code": found.error_code}

    @api.post("/host/trial/hang")
    async def hang() -> None:
        await asyncio.Event().wait()


def _add_streams(api: FastAPI, services: Services) -> None:
    @api.post("/host/trial/events", status_code=201)
    async def append() -> int:
        return await services.database.write(
            lambda tx: services.events.append(tx, FOLLOWED, "Told", {"text": "听到" * 10_000})
        )

    @api.get("/api/trial/events")
    async def events() -> Any:
        return await resource_stream(
            services.events, FOLLOWED, last_event_id=None, after_sequence=None
        )

    @api.post("/host/trial/progress", status_code=201)
    async def progress() -> None:
        data = {"phase": "transcribing", "message": Localised("phase.transcribing").to_json()}

        def append(tx: Transaction) -> None:
            services.events.append(tx, "trial_progress", "Progress", data, terminal=True)

        await services.database.write(append)

    @api.get("/api/trial/progress")
    async def progress_events() -> Any:
        return await resource_stream(
            services.events, "trial_progress", last_event_id=None, after_sequence=None
        )

    @api.get("/api/trial/failure")
    async def failure() -> None:
        raise RuntimeError("secret of the failure")


def install() -> None:
    """Put the domain among those of the product."""
    build_services, build_api = wiring.build_services, product.build_api

    def services_with_trial(settings: Settings) -> Services:
        services = build_services(settings)
        _register(services)
        return services

    def api_with_trial(services: Services, request_stop: Callable[[], None]) -> FastAPI:
        api = build_api(services, request_stop)
        _add_work(api, services)
        _add_streams(api, services)
        return api

    wiring.build_services = services_with_trial
    product.build_api = api_with_trial


if __name__ == "__main__":
    install()
    sys.exit(main())
