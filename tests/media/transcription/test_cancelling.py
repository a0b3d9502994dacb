import asyncio
from typing import Any

import psutil
import pytest

from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import JFK, LECTURE, RATE, encoded, samples_of

pytestmark = pytest.mark.asyncio(loop_scope="package")


def _speech_worker(media: MediaClient) -> int | None:
    children = media.app.services.workers.children()
    return next((child.pid for child in children if child.kind == "worker:speech"), None)


async def _cancel(media: MediaClient, job_id: str) -> None:
    answer = await media.http.post(f"{TRANSCRIPTIONS}/{job_id}/cancel")
    assert answer.status_code == 202, answer.text
    assert answer.json()["status"] == "accepted"
    assert answer.json()["message"]


@pytest.mark.proves(
    "media.cancel.running", "media.cancel.reaches-model", "media.cancel.error-code", "media.events.cancelled-payload",
    "media.cancel.next-job-runs", "media.transcriptions.error-field", "media.attachments.delete-active-job",
)  # fmt: skip
@pytest.mark.parametrize("stage", ["ModelLoading", "TranscriptionStarted"])
async def test_a_cancelled_job_stops_computing(media: MediaClient, stage: str) -> None:
    attachment = await media.upload("lecture.flac", LECTURE)
    job_id = (await media.start(attachment["attachment_id"], language="zh"))["job_id"]
    await media.until(job_id, stage)
    worker = _speech_worker(media)
    for force in (False, True):
        refused = await media.http.delete(
            f"/api/media/attachments/{attachment['attachment_id']}", params={"force": force}
        )
        assert code_of(refused) == "ATTACHMENT_IN_USE"
    await _cancel(media, job_id)
    events = [event async for event in media.events(job_id)]
    assert [event.name for event in events].count("Cancelled") == 1
    assert events[-1].data["status"] == "cancelled"
    assert events[-1].data["error"]["code"] == "TRANSCRIPTION_CANCELLED"
    job = await media.job(job_id)
    assert (job["status"], job["error_code"], job["error"]) == (
        "cancelled",
        "TRANSCRIPTION_CANCELLED",
        None,
    )
    assert job["completed_at"]
    assert job["segments"] == []
    if worker is not None and psutil.pid_exists(worker):
        # It listened, and waits for the next recording.
        assert worker == _speech_worker(media)
    refused = await media.http.post(f"{TRANSCRIPTIONS}/{job_id}/cancel")
    assert (refused.status_code, code_of(refused)) == (409, "JOB_ALREADY_FINISHED")
    following = await media.transcribed(encoded(samples_of(JFK)[: 4 * RATE], "flac"), language="en")
    assert following["status"] == "completed"


@pytest.mark.proves("media.cancel.queued")
async def test_a_queued_job_is_cancelled_before_it_runs(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    running = await media.start(speech["attachment_id"], language="en")
    queued = await media.start(speech["attachment_id"], language="en")
    await _cancel(media, queued["job_id"])
    names = [event.name async for event in media.events(queued["job_id"])]
    assert names == ["Queued", "Cancelled"]
    job = await media.job(queued["job_id"])
    assert (job["status"], job["started_at"]) == ("cancelled", None)
    assert job["completed_at"]
    assert (await media.finished(running["job_id"]))["status"] == "completed"


async def test_a_job_that_is_cancelled_twice_ends_once(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    job_id = (await media.start(speech["attachment_id"], language="en"))["job_id"]
    await media.until(job_id, "ModelLoading")
    path = f"{TRANSCRIPTIONS}/{job_id}/cancel"
    answers = await asyncio.gather(media.http.post(path), media.http.post(path))
    assert {answer.status_code for answer in answers} <= {202, 409}
    names = [event.name async for event in media.events(job_id)]
    assert names.count("Cancelled") == 1


@pytest.mark.proves("media.transcriptions.queue-full")
async def test_a_full_queue_takes_no_more(media: MediaClient, speech: dict[str, Any]) -> None:
    request = {"attachment_id": speech["attachment_id"], "language": "en"}
    jobs = []
    while (answer := await media.http.post(TRANSCRIPTIONS, json=request)).status_code == 202:
        jobs.append(answer.json()["job_id"])
    assert (answer.status_code, code_of(answer)) == (429, "TRANSCRIPTION_QUEUE_FULL")
    assert len(jobs) in (100, 101)
    total = (await media.http.get(TRANSCRIPTIONS, params={"status": "queued"})).json()["page"][
        "total"
    ]
    assert total == 100
    for job_id in reversed(jobs):
        await media.http.post(f"{TRANSCRIPTIONS}/{job_id}/cancel")
    await media.finished(jobs[0])
