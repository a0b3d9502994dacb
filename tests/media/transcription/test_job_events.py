from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.media.client import TERMINAL, TRANSCRIPTIONS, Event, MediaClient
from tests.media.samples import CALL, JFK, encoded, samples_of

pytestmark = pytest.mark.asyncio(loop_scope="package")
NAMES = {
    "Queued", "ModelLoading", "DiarizationStarted", "DiarizationCompleted", "TranscriptionStarted", "Progress",
    "Completed", "Failed", "Cancelled",
}  # fmt: skip


async def _events(media: MediaClient, job_id: str, after: int | None = None) -> list[Event]:
    return [event async for event in media.events(job_id, after)]


@pytest.mark.proves(
    "media.events.stream",
    "media.events.names",
    "media.events.queued-at-once",
    "media.events.completed-payload",
)
async def test_a_job_tells_what_happens_to_it(media: MediaClient, speech: dict[str, Any]) -> None:
    events = await _events(media, speech["job_id"])
    assert events[0].name == "Queued"
    assert {event.name for event in events} <= NAMES
    assert [event.sequence for event in events] == sorted({event.sequence for event in events})
    assert [event.name for event in events if event.name in TERMINAL] == ["Completed"]
    assert events[-1].data == {
        "status": "completed",
        "language": "en",
        "segment_count": len(speech["segments"]),
        "duration_seconds": 11.0,
        "warnings": [],
    }


@pytest.mark.proves(
    "media.events.progress-payload",
    "media.events.progress-regular",
    "media.transcriptions.updated-at",
)
async def test_a_long_recording_tells_how_far_it_is(media: MediaClient) -> None:
    long = np.concatenate([samples_of(CALL), samples_of(JFK), samples_of(CALL)])
    attachment = await media.upload("long.flac", encoded(long, "flac"))
    job = await media.start(attachment["attachment_id"], language="en")
    percents: list[float] = []
    updated = [job["updated_at"]]
    async for event in media.events(job["job_id"]):
        if event.name != "Progress":
            continue
        assert set(event.data) == {"phase", "current", "total", "percent", "message"}
        seen = await media.job(job["job_id"])
        updated.append(seen["updated_at"])
        if event.data["phase"] == "transcribing":
            percents.append(event.data["percent"])
            if seen["status"] == "running":
                assert seen["progress"]["percent"] >= event.data["percent"]
                assert seen["started_at"]
    assert percents == sorted(percents)
    assert len([percent for percent in percents if 0 < percent < 100]) >= 2
    assert updated == sorted(updated)
    assert len(set(updated)) > 2


@pytest.mark.proves("media.events.resume-any-point")
async def test_a_stream_goes_on_after_any_event(media: MediaClient, speech: dict[str, Any]) -> None:
    events = await _events(media, speech["job_id"])
    for position, event in enumerate(events[:-1]):
        assert await _events(media, speech["job_id"], event.sequence) == events[position + 1 :]
    path = f"{TRANSCRIPTIONS}/{speech['job_id']}/events"
    last = events[-1].sequence
    assert (await media.http.get(path, headers={"Last-Event-ID": str(last)})).status_code == 204
    assert (await media.http.get(path, params={"after_sequence": last + 1})).status_code == 400


@pytest.mark.proves("media.transcriptions.queue-order", "media.events.queued-at-once")
async def test_jobs_run_one_after_the_other_in_order(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    jobs = [await media.start(speech["attachment_id"], language="en") for _ in range(3)]
    first = [event async for event in media.events(jobs[2]["job_id"])]
    assert first[0].name == "Queued"
    ended = [await media.job(job["job_id"]) for job in jobs]
    assert [job["status"] for job in ended] == ["completed"] * 3
    for earlier, later in pairwise(ended):
        assert earlier["completed_at"] <= later["started_at"]
