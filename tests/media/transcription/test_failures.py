import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import MODELS_DIR, running_app
from tests.media.client import MediaClient
from tests.media.samples import JFK, LECTURE, RATE, encoded, samples_of, undecodable

pytestmark = pytest.mark.asyncio(loop_scope="package")


def _is_safe(value: Any) -> bool:
    text = str(value)
    return not any(
        hint in text for hint in ("/", "\\", "Traceback", "Error:", "av.", "ctranslate2")
    )


@pytest.mark.proves(
    "media.events.failed-payload",
    "media.failures.undecodable",
    "media.transcriptions.error-field",
    "media.failures.no-detail-leak",
)
async def test_a_recording_without_readable_sound_fails(media: MediaClient) -> None:
    job = await media.transcribed(undecodable())
    assert (job["status"], job["error_code"]) == ("failed", "UNSUPPORTED_AUDIO_FORMAT")
    assert job["error"]
    assert _is_safe(job["error"])
    events = [event async for event in media.events(job["job_id"])]
    assert events[-1].name == "Failed"
    assert events[-1].data == {
        "status": "failed",
        "error": {"code": job["error_code"], "message": job["error"], "details": {}},
    }
    assert job["segments"] == []
    assert job["text"] is None


@pytest.mark.proves("media.segments.video")
async def test_a_video_without_sound_fails(media: MediaClient) -> None:
    content = encoded(samples_of(JFK)[:RATE], "mp4", pictures=True, sound=False)
    job = await media.transcribed(content, "silent.mp4")
    assert (job["status"], job["error_code"]) == ("failed", "UNSUPPORTED_AUDIO_FORMAT")


@pytest.mark.proves("media.failures.damaged-end")
async def test_a_cut_recording_is_transcribed_up_to_its_end(media: MediaClient) -> None:
    content = JFK.read_bytes()
    job = await media.transcribed(content[: len(content) * 3 // 4], language="en")
    assert job["status"] == "completed"
    assert job["warnings"] == ["AUDIO_TRUNCATED"]
    assert "ask not what your country can do for you" in job["text"]


@pytest.mark.proves("media.failures.worker-dies")
async def test_a_killed_worker_fails_its_job_alone(media: MediaClient) -> None:
    attachment = await media.upload("lecture.flac", LECTURE)
    job_id = (await media.start(attachment["attachment_id"], language="zh"))["job_id"]
    await media.until(job_id, "TranscriptionStarted")
    children = media.app.services.workers.children()
    os.kill(next(child.pid for child in children if child.kind == "worker:speech"), signal.SIGKILL)
    job = await media.finished(job_id)
    assert (job["status"], job["error_code"]) == ("failed", "TRANSCRIPTION_FAILED")
    following = await media.transcribed(encoded(samples_of(JFK)[: 4 * RATE], "flac"), language="en")
    assert following["status"] == "completed"


@pytest.mark.proves("media.failures.attachment-gone")
async def test_a_vanished_file_fails_its_job(media: MediaClient, attachments_folder: Path) -> None:
    attachment = await media.upload("talk.flac", JFK)
    for name in media.kept_files():
        if name.startswith(attachment["attachment_id"]):
            os.unlink(attachments_folder / name)  # noqa: PTH108 - pathlib counts as blocking here
    job = await media.finished((await media.start(attachment["attachment_id"]))["job_id"])
    assert (job["status"], job["error_code"]) == ("failed", "ATTACHMENT_NOT_FOUND")


@pytest.mark.proves("media.failures.no-model")
async def test_without_a_model_there_is_no_transcript(tmp_path: Path) -> None:
    async with running_app(tmp_path, models_dirs=()) as app:
        job = await MediaClient(app).transcribed(JFK)
    assert (job["status"], job["error_code"]) == ("failed", "LOCAL_MODEL_NOT_INSTALLED")
    assert (job["text"], job["segments"], job["source"]) == (None, [], None)
    assert "nstall" in job["error"]


@pytest.mark.proves("media.failures.model-unavailable", "media.failures.no-detail-leak")
@pytest.mark.parametrize("damage", ["cut", "scrambled"])
async def test_a_damaged_model_is_not_used(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "models" / "whisper-base"
    folder.mkdir(parents=True)
    for path in (MODELS_DIR / "whisper-base").iterdir():
        if path.name != "model.bin":
            (folder / path.name).write_bytes(path.read_bytes())
    with (MODELS_DIR / "whisper-base" / "model.bin").open("rb") as whole:
        weights = bytearray(whole.read(4_000_000 if damage == "cut" else -1))
    if damage == "scrambled":
        # Still in its form, but one of the variables has another name: only loading shows it.
        weights = weights.replace(b"encoder/conv1", b"encoder/xonv1")
    (folder / "model.bin").write_bytes(weights)
    async with running_app(tmp_path, models_dirs=(tmp_path / "models",)) as app:
        job = await MediaClient(app).transcribed(JFK)
    assert (job["status"], job["error_code"]) == ("failed", "TRANSCRIPTION_MODEL_UNAVAILABLE")
    assert _is_safe(job["error"])
