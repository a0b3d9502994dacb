"""What is left of uploads and jobs when the server is killed, seen on real processes."""

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar
from tests.host.serving import eventually
from tests.media.client import ATTACHMENTS, TRANSCRIPTIONS
from tests.media.samples import CALL, JFK, LECTURE

LaunchSidecar = Callable[..., Sidecar]


@pytest.fixture
def relaunch(launch_sidecar: LaunchSidecar, tmp_path: Path) -> Callable[[], Sidecar]:
    """Starts a sidecar on the same data and vault as before."""
    vault = tmp_path / "vault"
    vault.mkdir()
    return lambda: launch_sidecar(vault_path=vault)


def _upload(sidecar: Sidecar, path: Path, **headers: str) -> dict[str, Any]:
    answer = sidecar.upload(ATTACHMENTS, path, headers=headers)
    assert answer.status == 201, answer.json()
    attachment: dict[str, Any] = answer.json()
    return attachment


def _create(sidecar: Sidecar, attachment_id: str, **options: Any) -> str:
    answer = sidecar.post(TRANSCRIPTIONS, json={"attachment_id": attachment_id, **options})
    assert answer.status == 202, answer.json()
    return str(answer.json()["job_id"])


def _job(sidecar: Sidecar, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = sidecar.get(f"{TRANSCRIPTIONS}/{job_id}").json()
    return job


def _until(
    sidecar: Sidecar, job_id: str, name: str | None = None, after: int | None = None
) -> list[tuple[int, str]]:
    """Follow a job to the event called *name*, or to its end, and return what happened."""
    seen: list[tuple[int, str]] = []
    with closing(sidecar.events(f"{TRANSCRIPTIONS}/{job_id}/events", after)) as events:
        for event in events:
            seen.append((int(event.id), event.event))
            if event.event == name:
                break
    return seen


def _phases(sidecar: Sidecar, job_id: str) -> set[str]:
    """Return the phases that a job's progress told of."""
    with closing(sidecar.events(f"{TRANSCRIPTIONS}/{job_id}/events")) as events:
        told = [json.loads(event.data)["data"] for event in events if event.event == "Progress"]
    return {progress["phase"] for progress in told}


@pytest.mark.proves(
    "media.restart.queued", "media.restart.running", "media.restart.no-duplicates", "media.restart.completed",
    "media.attachments.persisted", "media.idempotency.after-restart", "media.revisions.persisted",
)  # fmt: skip
def test_jobs_go_on_after_a_kill(relaunch: Callable[[], Sidecar]) -> None:
    first = relaunch()
    key = {"Idempotency-Key": "kept-over-a-restart"}
    speech = _upload(first, JFK, **key)
    done = _create(first, speech["attachment_id"], language="en", metadata={"課": [1]})
    _until(first, done)
    edit = {"base_revision": 1, "segments": [{"segment_id": "segment_0001", "text": "Edited"}]}
    assert first.patch(f"{TRANSCRIPTIONS}/{done}/revisions", json=edit).status == 200
    completed, events = _job(first, done), _until(first, done)
    running = _create(first, _upload(first, CALL)["attachment_id"], language="en")
    queued = _create(first, speech["attachment_id"], language="en")
    seen = _until(first, running, "TranscriptionStarted")
    first.process.kill()

    second = relaunch()
    assert _job(second, done) == completed
    assert _until(second, done) == events
    assert _upload(second, JFK, **key) == speech
    assert second.get(f"{ATTACHMENTS}/{speech['attachment_id']}/content").body == JFK.read_bytes()
    for job_id in (running, queued):
        happened = _until(second, job_id)
        sequences = [sequence for sequence, _ in happened]
        assert sequences == sorted(set(sequences))
        assert [name for _, name in happened if name in ("Completed", "Failed", "Cancelled")] == [
            "Completed"
        ]
        job = _job(second, job_id)
        assert job["status"] == "completed"
        starts = [segment["start_time"] for segment in job["segments"]]
        assert starts == sorted(set(starts))
    assert _until(second, running)[: len(seen)] == seen
    # Half a transcript is not gone on with, and whoever watches is told so.
    assert "starting_over" in _phases(second, running)
    assert "starting_over" not in _phases(second, queued)


@pytest.mark.proves("media.restart.running")
def test_a_job_that_two_processes_died_over_fails(relaunch: Callable[[], Sidecar]) -> None:
    sidecar = relaunch()
    job_id = _create(sidecar, _upload(sidecar, LECTURE)["attachment_id"], language="zh")
    seen = _until(sidecar, job_id, "TranscriptionStarted")
    sidecar.process.kill()
    sidecar = relaunch()
    _until(sidecar, job_id, "TranscriptionStarted", after=seen[-1][0])
    sidecar.process.kill()
    sidecar = relaunch()
    names = [name for _, name in _until(sidecar, job_id)]
    assert names[-1] == "Failed"
    assert _job(sidecar, job_id)["error_code"] == "TRANSCRIPTION_FAILED"


@pytest.mark.proves("media.attachments.upload-interrupted")
def test_what_a_killed_server_left_of_uploads_is_removed(
    relaunch: Callable[[], Sidecar], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    sidecar = relaunch()
    kept = _upload(sidecar, JFK)
    sidecar.process.kill()
    leftovers = [data / "tmp" / "upload-0123", data / "attachments" / "attachment_0.wav"]
    for path in leftovers:
        path.write_bytes(b"half an upload")
        os.utime(path, (1, 1))
    sidecar = relaunch()
    eventually(lambda: not any(path.exists() for path in leftovers), "the leftovers are gone", 10.0)
    assert sidecar.get(f"{ATTACHMENTS}/{kept['attachment_id']}/content").body == JFK.read_bytes()
