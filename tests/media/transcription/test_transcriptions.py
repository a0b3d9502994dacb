import asyncio
import json
from typing import Any

import pytest

from sidecar.media.transcription.languages import LANGUAGES
from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import CALL, JFK, LECTURE, RATE, TINY_PNG, encoded, samples_of, silence

pytestmark = pytest.mark.asyncio(loop_scope="package")

JOB_FIELDS = {
    "job_id", "attachment_id", "status", "progress", "language", "diarization_enabled", "segments", "text",
    "warnings", "error", "created_at", "started_at", "updated_at", "completed_at",
}  # fmt: skip
SENTENCE = "ask not what your country can do for you"


@pytest.mark.proves(
    "media.transcriptions.create",
    "media.transcriptions.job-fields",
    "media.transcriptions.created-values",
    "media.transcriptions.source-fields",
)
async def test_a_new_job_is_queued_and_empty(media: MediaClient, speech: dict[str, Any]) -> None:
    job = await media.start(speech["attachment_id"], diarization=True)
    assert JOB_FIELDS | {"source", "fallback_reason", "error_code", "metadata", "revision"} <= set(
        job
    )
    assert job["status"] == "queued"
    for name in (
        "progress",
        "text",
        "error",
        "error_code",
        "started_at",
        "completed_at",
        "source",
        "revision",
    ):
        assert job[name] is None
    assert job["segments"] == job["warnings"] == []
    assert job["diarization_enabled"] is True
    assert job["created_at"] == job["updated_at"]
    await media.http.post(f"{TRANSCRIPTIONS}/{job['job_id']}/cancel")
    await media.finished(job["job_id"])


@pytest.mark.proves(
    "media.transcriptions.get",
    "media.transcriptions.language-auto",
    "media.segments.fields",
    "media.segments.text-joined",
    "media.routing.unconfigured",
)
async def test_english_speech_becomes_its_words(media: MediaClient, speech: dict[str, Any]) -> None:
    job = await media.job(speech["job_id"])
    assert job["status"] == "completed"
    assert job["language"] == "en"
    assert (job["source"], job["fallback_reason"]) == ("local", None)
    assert SENTENCE in job["text"]
    assert job["text"] == " ".join(segment["text"] for segment in job["segments"])
    assert job["error"] is job["error_code"] is None
    for segment in job["segments"]:
        assert set(segment) == {
            "segment_id", "speaker", "start_time", "end_time", "text", "confidence", "words",
        }  # fmt: skip


@pytest.mark.proves(
    "media.segments.sorted",
    "media.segments.durations",
    "media.segments.no-overlap",
    "media.segments.words-on",
    "media.segments.id-stable",
)
async def test_times_lie_in_order_inside_the_recording(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    latest = 0.0
    for segment in speech["segments"]:
        assert latest <= segment["start_time"] <= segment["end_time"] <= 11.5
        latest = segment["end_time"]
        assert segment["words"]
        word_end = segment["start_time"]
        for word in segment["words"]:
            assert set(word) == {"text", "start_time", "end_time", "confidence"}
            assert word_end <= word["start_time"] <= word["end_time"] <= segment["end_time"]
            word_end = word["end_time"]
        assert " ".join(word["text"] for word in segment["words"]) == segment["text"]
    again = await media.job(speech["job_id"])
    ids = [segment["segment_id"] for segment in again["segments"]]
    assert ids == [segment["segment_id"] for segment in speech["segments"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.proves(
    "media.transcriptions.language-forced",
    "media.segments.confidence-range",
    "media.segments.words-off",
)
async def test_mandarin_becomes_simplified_characters_in_sentences(media: MediaClient) -> None:
    attachment = await media.upload("操作系统.flac", LECTURE)
    job = await media.start(attachment["attachment_id"], language="zh")
    assert job["language"] == "zh"
    job = await media.finished(job["job_id"])
    assert job["language"] == "zh"
    for phrase in ("同学们好", "操作系统", "先来先服务最简单", "不会发生", "星期五之前"):
        assert phrase in job["text"]
    assert not set("們統個會發時後條") & set(job["text"])
    # The lecture has nine sentences: half a minute in one piece could not be cited.
    assert len(job["segments"]) >= 7
    assert all(segment["words"] == [] for segment in job["segments"])
    confidences = {segment["confidence"] for segment in job["segments"]}
    assert all(0 <= confidence <= 1 for confidence in confidences)
    assert len(confidences) > 1


@pytest.mark.proves("media.segments.no-speech", "media.warnings.format")
@pytest.mark.parametrize("language", [None, "zh"])
async def test_silence_has_no_words(media: MediaClient, language: str | None) -> None:
    job = await media.transcribed(encoded(silence(20), "flac"), language=language)
    assert (job["status"], job["segments"], job["text"]) == ("completed", [], "")
    assert job["warnings"] == ["NO_SPEECH_DETECTED"]


async def test_speech_after_a_long_silence_keeps_its_time(media: MediaClient) -> None:
    import numpy as np

    late = np.concatenate([silence(20), samples_of(JFK)])
    job = await media.transcribed(encoded(late, "flac"), language="en")
    assert SENTENCE in job["text"]
    assert job["segments"][0]["start_time"] >= 19.0
    assert job["segments"][-1]["end_time"] <= 31.5


@pytest.mark.proves(
    "media.diarization.unavailable",
    "media.events.order-without-diarization",
    "media.diarization.not-implemented-gone",
)
async def test_without_a_speaker_model_the_text_comes_alone(media: MediaClient) -> None:
    attachment = await media.upload("call.flac", CALL)
    job = await media.start(attachment["attachment_id"], diarization=True, language="en")
    names = [event.name async for event in media.events(job["job_id"])]
    assert list(dict.fromkeys(names)) == [
        "Queued",
        "ModelLoading",
        "Progress",
        "TranscriptionStarted",
        "Completed",
    ]
    assert names.count("ModelLoading") == names.count("TranscriptionStarted") == 1
    job = await media.job(job["job_id"])
    assert "Diane in New Jersey" in job["text"]
    assert "DIARIZATION_UNAVAILABLE" in job["warnings"]
    assert {segment["speaker"] for segment in job["segments"]} == {None}


@pytest.mark.proves("media.diarization.off")
async def test_speakers_that_nobody_asked_for_are_not_told(speech: dict[str, Any]) -> None:
    assert {segment["speaker"] for segment in speech["segments"]} == {None}
    assert speech["warnings"] == []


@pytest.mark.proves("media.segments.video")
@pytest.mark.parametrize("suffix", ["mp4", "webm"])
async def test_the_sound_of_a_video_is_transcribed(media: MediaClient, suffix: str) -> None:
    content = encoded(samples_of(JFK), suffix, pictures=True)
    job = await media.transcribed(content, f"talk.{suffix}", language="en")
    assert SENTENCE in job["text"]


@pytest.mark.proves("media.transcriptions.metadata-kept")
async def test_metadata_comes_back_unchanged(media: MediaClient, speech: dict[str, Any]) -> None:
    metadata = {"course": "操作系统", "n": [1, {"a": None}], "emoji": "🎙️"}
    job = await media.start(speech["attachment_id"], metadata=metadata)
    assert job["metadata"] == metadata
    await media.http.post(f"{TRANSCRIPTIONS}/{job['job_id']}/cancel")
    assert (await media.finished(job["job_id"]))["metadata"] == metadata
    size = len(json.dumps({"a": ""}))
    for length, status in ((16 * 1024 - size, 202), (16 * 1024 - size + 1, 422)):
        request = {"attachment_id": speech["attachment_id"], "metadata": {"a": "x" * length}}
        answer = await media.http.post(TRANSCRIPTIONS, json=request)
        assert answer.status_code == status
        if status == 202:
            await media.http.post(f"{TRANSCRIPTIONS}/{answer.json()['job_id']}/cancel")


@pytest.mark.proves(
    "media.transcriptions.request-fields", "media.transcriptions.no-device-or-model"
)
@pytest.mark.parametrize("field", ["model_path", "device", "compute_type", "cuda_path", "model"])
async def test_the_model_cannot_be_named_in_a_request(
    media: MediaClient, speech: dict[str, Any], field: str
) -> None:
    request = {"attachment_id": speech["attachment_id"], field: "/models/any"}
    answer = await media.http.post(TRANSCRIPTIONS, json=request)
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")


@pytest.mark.proves(
    "media.transcriptions.profile-not-found", "media.transcriptions.profile-not-a-path"
)
@pytest.mark.parametrize(
    "profile", ["fast", "../.models/whisper-base", "/etc", "Systran/faster-whisper-base", ""]
)
async def test_an_unknown_profile_is_not_found(
    media: MediaClient, speech: dict[str, Any], profile: str
) -> None:
    request = {"attachment_id": speech["attachment_id"], "profile_id": profile}
    answer = await media.http.post(TRANSCRIPTIONS, json=request)
    assert (answer.status_code, code_of(answer)) == (404, "TRANSCRIPTION_PROFILE_NOT_FOUND")


@pytest.mark.proves("media.transcriptions.language-invalid")
@pytest.mark.parametrize("language", ["xx", "english", "zh-CN", "", "EN"])
async def test_an_unknown_language_is_refused(
    media: MediaClient, speech: dict[str, Any], language: str
) -> None:
    request = {"attachment_id": speech["attachment_id"], "language": language}
    answer = await media.http.post(TRANSCRIPTIONS, json=request)
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")


def _recogniser_languages() -> set[str]:
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    return set(_LANGUAGE_CODES)


async def test_the_languages_are_those_of_the_recogniser() -> None:
    assert await asyncio.to_thread(_recogniser_languages) == LANGUAGES


@pytest.mark.proves("media.transcriptions.attachment-not-found", "media.transcriptions.not-audio")
async def test_only_recordings_can_be_transcribed(media: MediaClient) -> None:
    total = (await media.http.get(TRANSCRIPTIONS)).json()["page"]["total"]
    picture = await media.upload("a.png", TINY_PNG)
    for attachment_id, status, code in (
        ("attachment_0", 404, "ATTACHMENT_NOT_FOUND"),
        (picture["attachment_id"], 400, "UNSUPPORTED_AUDIO_FORMAT"),
    ):
        answer = await media.http.post(TRANSCRIPTIONS, json={"attachment_id": attachment_id})
        assert (answer.status_code, code_of(answer)) == (status, code)
    assert (await media.http.get(TRANSCRIPTIONS)).json()["page"]["total"] == total


@pytest.mark.proves(
    "media.transcriptions.list",
    "media.transcriptions.list-status-filter",
    "media.transcriptions.repeat-makes-new-job",
)
async def test_jobs_are_listed_by_status(media: MediaClient, speech: dict[str, Any]) -> None:
    made = [await media.start(speech["attachment_id"]) for _ in range(2)]
    assert made[0]["job_id"] != made[1]["job_id"]
    for job in made[::-1]:
        await media.http.post(f"{TRANSCRIPTIONS}/{job['job_id']}/cancel")
        await media.finished(job["job_id"])
    answer = (
        await media.http.get(TRANSCRIPTIONS, params={"status": "cancelled", "limit": 2})
    ).json()
    assert [item["job_id"] for item in answer["items"]] == [made[1]["job_id"], made[0]["job_id"]]
    completed = (
        await media.http.get(TRANSCRIPTIONS, params={"status": "completed", "limit": 200})
    ).json()
    assert speech["job_id"] in [item["job_id"] for item in completed["items"]]
    assert {item["status"] for item in completed["items"]} == {"completed"}
    assert completed["page"]["total"] == len(completed["items"])
    everything = (await media.http.get(f"{TRANSCRIPTIONS}?status=&limit=&offset=")).json()
    assert everything["page"]["limit"] == 50
    assert everything["page"]["total"] > completed["page"]["total"]
    assert (
        code_of(await media.http.get(TRANSCRIPTIONS, params={"status": "processing"}))
        == "VALIDATION_ERROR"
    )


@pytest.mark.proves("media.transcriptions.not-found")
@pytest.mark.parametrize("job_id", ["transcription_0", "🎙️", "x" * 300])
async def test_an_unknown_job_is_not_found(media: MediaClient, job_id: str) -> None:
    path = f"{TRANSCRIPTIONS}/{job_id}"
    answers = [
        await media.http.get(path),
        await media.http.get(f"{path}/events"),
        await media.http.post(f"{path}/cancel"),
        await media.http.post(f"{path}/notes", json={}),
        await media.http.get(f"{path}/revisions"),
        await media.http.get(f"{path}/revisions/1"),
        await media.http.patch(f"{path}/revisions", json={"base_revision": 1}),
    ]
    assert {(answer.status_code, code_of(answer)) for answer in answers} == {
        (404, "RESOURCE_NOT_FOUND")
    }


@pytest.mark.proves("media.attachments.delete-referenced")
async def test_a_transcribed_recording_is_deleted_by_force_only(media: MediaClient) -> None:
    job = await media.transcribed(encoded(samples_of(JFK)[: 2 * RATE], "flac"), language="en")
    path = f"/api/media/attachments/{job['attachment_id']}"
    refused = await media.http.delete(path)
    assert (refused.status_code, code_of(refused)) == (409, "ATTACHMENT_IN_USE")
    assert refused.json()["error"]["details"]["references"] == [
        {"type": "transcription", "id": job["job_id"]}
    ]
    assert (await media.http.delete(path, params={"force": True})).status_code == 204
    assert (await media.job(job["job_id"]))["text"] == job["text"]
