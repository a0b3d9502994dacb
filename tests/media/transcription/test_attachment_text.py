"""The words of an attachment for who needs no job: chat messages."""

import asyncio

import pytest

from sidecar.kernel.errors import ProjectError
from tests.media.client import TRANSCRIPTIONS, MediaClient
from tests.media.samples import JFK, LECTURE, RATE, TINY_PNG, encoded, samples_of, silence

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_a_recording_becomes_text_without_a_job(media: MediaClient) -> None:
    jobs = (await media.http.get(TRANSCRIPTIONS)).json()["page"]["total"]
    attachment = await media.upload("talk.flac", JFK)
    seen: list[tuple[float, float]] = []

    async def progress(done: float, duration: float) -> None:
        seen.append((done, duration))

    found = await media.app.services.media.attachment_text(
        attachment["attachment_id"], progress=progress
    )
    assert "ask not what your country can do for you" in found.text
    assert (found.truncated, found.warnings) == (False, ())
    assert seen[0][0] == 0.0
    assert seen[0][1] == pytest.approx(11.0, abs=0.1)
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)
    assert (await media.http.get(TRANSCRIPTIONS)).json()["page"]["total"] == jobs
    records = (await media.http.get("/api/local-models/diagnostics")).json()["items"]
    assert (records[0]["purpose"], records[0]["status"]) == ("transcription", "completed")
    assert await media.app.services.media.transcriptions.models_in_use() == set()


async def test_a_transcript_that_was_edited_is_taken_as_it_is(media: MediaClient) -> None:
    content = encoded(samples_of(JFK)[: 3 * RATE], "flac")
    job = await media.transcribed(content[: len(content) * 3 // 4], language="en")
    edit = {"base_revision": 1, "segments": [{"segment_id": "segment_0001", "text": "Mine now."}]}
    answer = await media.http.patch(f"{TRANSCRIPTIONS}/{job['job_id']}/revisions", json=edit)
    assert answer.status_code == 200, answer.text
    found = await media.app.services.media.attachment_text(job["attachment_id"])
    assert found.text == "Mine now."
    assert found.truncated
    assert found.warnings == ("AUDIO_TRUNCATED",)


async def test_silence_has_a_warning_and_no_text(media: MediaClient) -> None:
    attachment = await media.upload("quiet.flac", encoded(silence(5), "flac"))
    found = await media.app.services.media.attachment_text(attachment["attachment_id"])
    assert (found.text, found.warnings) == ("", ("NO_SPEECH_DETECTED",))


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("a.png", TINY_PNG, "UNSUPPORTED_AUDIO_FORMAT"), (None, b"", "ATTACHMENT_NOT_FOUND")],
)
async def test_what_is_no_recording_has_no_text(
    media: MediaClient, name: str | None, content: bytes, code: str
) -> None:
    attachment_id = "attachment_0"
    if name is not None:
        attachment_id = (await media.upload(name, content))["attachment_id"]
    with pytest.raises(ProjectError) as raised:
        await media.app.services.media.attachment_text(attachment_id)
    assert raised.value.code == code


async def test_a_cancel_ends_the_work(media: MediaClient) -> None:
    attachment = await media.upload("lecture.flac", LECTURE)
    begun = asyncio.Event()

    async def progress(_done: float, _duration: float) -> None:
        begun.set()

    service = media.app.services.media
    work = asyncio.create_task(
        service.attachment_text(attachment["attachment_id"], progress=progress)
    )
    await asyncio.wait_for(begun.wait(), 30)
    assert await service.transcriptions.models_in_use() != set()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(work, 5)
    # Nothing computes for it any more: the next recording has the worker to itself.
    short = encoded(samples_of(JFK)[: 3 * RATE], "flac")
    following = await media.transcribed(short, language="en")
    assert following["status"] == "completed"
    assert await service.transcriptions.models_in_use() == set()
