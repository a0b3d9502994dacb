"""Exports of a real process: it dies, another goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar
from tests.conftest import LaunchSidecar
from tests.export.client import TERMINAL, WAIT_SECONDS, markdown_request
from tests.export.needs import need_pdf
from tests.export.test_jobs import LARGE


def poll(sidecar: Sidecar, job_id: str, *states: str) -> dict[str, Any]:
    """Wait until a job has one of *states*."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        job: dict[str, Any] = sidecar.get(f"/api/exports/{job_id}").json()
        if job["status"] in states:
            return job
        time.sleep(0.02)
    raise AssertionError(f"{job_id} is still none of {states}")


@pytest.mark.proves("export.job.restart-interrupted")
@pytest.mark.skipif(os.name != "posix", reason="the process is ended with SIGKILL")
def test_a_killed_process_leaves_no_job_behind(launch_sidecar: LaunchSidecar) -> None:
    first = launch_sidecar(models=False)
    jobs = [
        first.post("/api/exports", json=markdown_request(LARGE)).json()["job_id"] for _ in range(3)
    ]
    poll(first, jobs[0], "running")
    os.kill(first.pid, signal.SIGKILL)
    second = launch_sidecar(models=False)
    for job_id in jobs:
        job = poll(second, job_id, *TERMINAL)
        assert job["status"] == "completed", job
        response = second.get(f"/api/exports/{job_id}/file")
        assert len(response.body) == job["file"]["size"]


@pytest.mark.parametrize(
    ("format_", "library"), [("pdf", "weasyprint"), ("docx", "docx"), ("html", "pygments")]
)
def test_what_a_format_needs_is_loaded_beforehand(
    format_: str, library: str, tmp_path: Path
) -> None:
    if format_ == "pdf":
        need_pdf()
    program = (
        "import ctypes.util, pathlib, sys; from sidecar.export.pipeline import Pipeline;"
        "look = ctypes.util.find_library; pipeline = Pipeline((), pathlib.Path(sys.argv[1]));"
        "assert sys.argv[3] not in sys.modules; pipeline.load(sys.argv[2]);"
        "assert sys.argv[3] in sys.modules; assert ctypes.util.find_library is look"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path), format_, library]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
