"""Every kind of model call, each in the one ledger, once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import RunningApp, running_app
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Received, Turn, fake_upstream
from tests.media.client import MediaClient
from tests.media.samples import JFK

TURN = Turn(text=["OK"], usage=(7, 2))


def _answer(request: Received) -> Answer:
    if request.path.endswith("/embeddings"):
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        return Answer.of_json({"data": [{"embedding": [1.0, 2.0]}], "usage": usage})
    if request.path.endswith("/transcriptions"):
        return Answer.of_json({"text": "words", "duration": 11.0})
    if request.path.endswith("/speaker-matches"):
        return Answer.of_json({"score": 0.5})
    whole = not request.json.get("stream")
    return openai_chat.whole(TURN) if whole else openai_chat.stream(TURN)


@pytest.fixture
def upstream() -> Any:
    with fake_upstream() as started:
        started.respond = _answer
        yield started


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    async with running_app(tmp_path, models_dirs=()) as started:
        yield started


@pytest.mark.proves(
    "providers.usage.one-ledger", "providers.usage.get", "providers.usage.export-private"
)
async def test_all_callers_write_to_one_ledger(app: RunningApp, upstream: FakeUpstream) -> None:
    credential = {"secret": "canary-5511-of-the-ledger"}
    await app.http.put("/api/credentials/provider.secretive", json=credential)
    configuration = {
        "name": "某服务",
        "provider_type": "openai_compatible",
        "base_url": upstream.url,
        "default_model": "m",
        "credential_id": "provider.secretive",
    }
    provider = (await app.http.post("/api/providers", json=configuration)).json()
    route = {"provider_id": provider["provider_id"], "model": "routed"}
    config = (await app.http.get("/api/model-routing")).json()["config"]
    routes = {"embedding": route, "transcription": route, "speaker_matching": route}
    await app.http.put("/api/model-routing", json=config | routes)
    question = [{"role": "user", "content": "the user's own question"}]
    chat = {"provider_id": provider["provider_id"], "messages": question}
    for stream in (True, False):
        probe = {"provider": configuration, "stream": stream}
        answer = await app.http.post("/api/providers/request-probe", json=probe)
        assert answer.status_code == 200, answer.text
    assert '"completed"' in (await app.http.post("/api/chat", json=chat)).text
    texts = {"texts": ["the user's own text"]}
    assert (await app.http.post("/api/models/embeddings", json=texts)).status_code == 200
    media = MediaClient(app)
    job = await media.transcribed(JFK, "the-user-s-own-name.flac")
    assert job["source"] == "api"
    pair = dict.fromkeys(("attachment_id", "reference_attachment_id"), job["attachment_id"])
    assert (await app.http.post("/api/media/speaker-matches", json=pair)).status_code == 200
    used = (await app.http.get("/api/usage")).json()
    assert used["request_count"] == len(upstream.received) == 6
    counts = {
        source: (await app.http.get("/api/usage", params={"source": source})).json()
        for source in ("probe", "chat", "embedding", "transcription", "speaker_matching")
    }
    assert {source: found["request_count"] for source, found in counts.items()} == {
        "probe": 2,
        "chat": 1,
        "embedding": 1,
        "transcription": 1,
        "speaker_matching": 1,
    }
    assert counts["probe"]["total_tokens"] == 18
    assert counts["chat"]["total_tokens"] == 9
    assert (used["input_tokens"], used["output_tokens"], used["total_tokens"]) == (24, 6, 30)
    assert used["token_covered_requests"] == 4
    assert (used["audio_request_count"], used["audio_seconds"]) == (2, 11.0)
    for file_format in ("csv", "json"):
        text = (await app.http.get("/api/usage/export", params={"format": file_format})).text
        assert text.count("speaker_matching") == 2
        for private in ("canary", "secretive", "own", "words", job["attachment_id"], upstream.url):
            assert private not in text, private
