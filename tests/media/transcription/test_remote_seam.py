"""What transcription does with a provider's answers and failures, whoever brings them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.kernel.errors import ProjectError
from sidecar.media.remote import RemoteRecording, RemoteSegment, RemoteTranscript
from tests.app_client import running_app
from tests.media.client import TRANSCRIPTIONS, MediaClient
from tests.media.samples import CALL, JFK, RATE, encoded, samples_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

Answer = Callable[[RemoteRecording], Awaitable[RemoteTranscript | None]]


class Provider:
    """Answers as a test wants it to."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.asked: list[RemoteRecording] = []

    async def transcribe(self, recording: RemoteRecording) -> RemoteTranscript | None:
        if self.answer is None:
            return None
        self.asked.append(recording)
        return await self.answer(recording)


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def routed(
    tmp_path_factory: pytest.TempPathFactory, provider: Provider
) -> AsyncIterator[MediaClient]:
    """A client of an application that has no local model, and a provider."""
    async with running_app(tmp_path_factory.mktemp("routed"), models_dirs=()) as app:
        app.services.media.use_remote(provider)
        yield MediaClient(app)


async def _text(_: RemoteRecording) -> RemoteTranscript:
    return RemoteTranscript(" My fellow Americans. ", "en")


def _short() -> bytes:
    return encoded(samples_of(JFK)[: 4 * RATE], "flac")


async def test_text_alone_becomes_one_segment(routed: MediaClient, provider: Provider) -> None:
    provider.answer = _text
    attachment = await routed.upload("秘密.flac", _short())
    started = await routed.start(attachment["attachment_id"], diarization=True)
    names = [event.name async for event in routed.events(started["job_id"])]
    assert "ModelLoading" not in names
    job = await routed.job(started["job_id"])
    assert (job["status"], job["source"], job["fallback_reason"]) == ("completed", "api", None)
    assert (job["text"], job["language"]) == ("My fellow Americans.", "en")
    (segment,) = job["segments"]
    assert (segment["start_time"], segment["end_time"]) == (0.0, pytest.approx(4.0, abs=0.1))
    assert (segment["confidence"], segment["words"]) == (None, [])
    assert job["warnings"] == ["DIARIZATION_UNAVAILABLE"]
    sent = provider.asked[-1]
    assert (sent.file_name, sent.mime_type, sent.language) == ("recording.flac", "audio/flac", None)
    assert sent.path.is_relative_to(routed.app.data_dir / "attachments")


async def test_times_of_a_provider_are_kept_in_order(
    routed: MediaClient, provider: Provider
) -> None:
    async def answer(_: RemoteRecording) -> RemoteTranscript:
        parts = [RemoteSegment("b", 1.0, 9.0), RemoteSegment("a", 0.0, 1.5)]
        return RemoteTranscript("a b", "en", parts)

    provider.answer = answer
    job = await routed.transcribed(_short())
    times = [(part["start_time"], part["end_time"], part["text"]) for part in job["segments"]]
    assert times == [(0.0, 1.5, "a"), (1.5, pytest.approx(4.0, abs=0.1), "b")]


@pytest.mark.parametrize(
    ("code", "blank"),
    [("PROVIDER_UNAVAILABLE", False), ("PROVIDER_INVALID_RESPONSE", True)],
)
async def test_the_reason_is_kept_when_the_local_model_is_missing_too(
    routed: MediaClient, provider: Provider, code: str, blank: bool
) -> None:
    async def answer(_: RemoteRecording) -> RemoteTranscript:
        if blank:
            return RemoteTranscript(" \n")
        raise ProjectError(code)

    provider.answer = answer
    job = await routed.transcribed(_short())
    assert (job["status"], job["error_code"]) == ("failed", "LOCAL_MODEL_NOT_INSTALLED")
    assert (job["source"], job["fallback_reason"], job["text"]) == (None, code, None)
    records = (await routed.http.get("/api/local-models/diagnostics")).json()["items"]
    assert {record["kind"] for record in records[:2]} == {"call", "fallback"}
    assert code in [record["fallback_reason"] for record in records[:2]]


async def test_without_a_route_nobody_is_asked(routed: MediaClient, provider: Provider) -> None:
    provider.answer = None
    before = len(provider.asked)
    job = await routed.transcribed(_short())
    assert (job["error_code"], job["fallback_reason"]) == ("LOCAL_MODEL_NOT_INSTALLED", None)
    assert len(provider.asked) == before


async def test_a_cancel_ends_the_call_and_nothing_steps_in(
    routed: MediaClient, provider: Provider
) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def answer(_: RemoteRecording) -> RemoteTranscript:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    provider.answer = answer
    attachment = await routed.upload("call.flac", CALL)
    job_id = (await routed.start(attachment["attachment_id"]))["job_id"]
    await asyncio.wait_for(asked.wait(), 10)
    await routed.http.post(f"{TRANSCRIPTIONS}/{job_id}/cancel")
    await asyncio.wait_for(ended.wait(), 10)
    job = await routed.finished(job_id)
    assert (job["status"], job["error_code"]) == ("cancelled", "TRANSCRIPTION_CANCELLED")


async def test_a_fallback_loads_the_model_after_the_attempt(
    tmp_path: Path, provider: Provider
) -> None:
    async def answer(_: RemoteRecording) -> RemoteTranscript:
        raise ProjectError("PROVIDER_TIMEOUT")

    provider.answer = answer
    async with running_app(tmp_path) as app:
        app.services.media.use_remote(provider)
        media = MediaClient(app)
        job = await media.transcribed(_short(), language="en")
        names = [event.name async for event in media.events(job["job_id"])]
    assert (job["status"], job["source"]) == ("completed", "local")
    assert job["fallback_reason"] == "PROVIDER_TIMEOUT"
    assert job["text"]
    assert "ModelLoading" in names
