"""POST /api/models/embeddings: the provider first, the local model behind it, never both."""

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.app_client import running_app
from tests.fakes.openai_models import (
    Answer,
    Asked,
    embeddings,
    fake_models,
    hash_vector,
)
from tests.model_routing.conftest import CREDENTIAL, KEY, Routing, new_provider
from tests.retrieval.models.real_model import OWN, lay
from tests.vault.conftest import eventually

PATH = "/api/models/embeddings"


async def embed(routing: Routing, *texts: str) -> dict[str, Any]:
    """Embed texts and return the answer."""
    answer = await routing.app.http.post(PATH, json={"texts": texts})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def refused(routing: Routing, *texts: str) -> tuple[int, str, dict[str, Any]]:
    """Embed texts and return status, code and details of the error."""
    answer = await routing.app.http.post(PATH, json={"texts": texts})
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["details"]


def cosine(one: list[float], other: list[float]) -> float:
    """Return how alike two vectors are."""
    product = sum(left * right for left, right in zip(one, other, strict=True))
    return product / math.hypot(*one) / math.hypot(*other)


# -- without a local model -------------------------------------------------------------------------


@pytest.mark.proves("providers.embeddings.not-installed", "providers.routing.unset-local")
async def test_with_neither_there_are_no_vectors(routing: Routing) -> None:
    assert await refused(routing, "text") == (409, "LOCAL_MODEL_NOT_INSTALLED", {})
    assert routing.fake.asked == []
    assert await routing.attempts() == []


@pytest.mark.proves(
    "providers.embeddings.shape",
    "providers.embeddings.vectors",
    "providers.routing.api-first",
    "providers.usage.one-ledger",
)
async def test_the_provider_answers(routing: Routing) -> None:
    await routing.set(embedding=routing.route(endpoint="/v2/embed"))
    found = await embed(routing, "one word", "两个 词", "one word")
    assert found == {
        "vectors": [hash_vector(text, 16) for text in ("one word", "两个 词", "one word")],
        "source": "api",
        "model_id": "routed-model",
        "dimensions": 16,
        "fallback_reason": None,
    }
    (asked,) = routing.fake.asked
    assert (asked.method, asked.path) == ("POST", "/v1/v2/embed")
    assert asked.json == {"model": "routed-model", "input": ["one word", "两个 词", "one word"]}
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    (attempt,) = await routing.attempts()
    assert attempt.pop("duration_ms") >= 0
    assert attempt.pop("started_at")
    assert attempt == {
        "source": "embedding",
        "capability": "embedding",
        "provider_id": routing.provider_id,
        "provider_name": "Routed",
        "model": "routed-model",
        "status": "completed",
        "error_code": None,
        "input_tokens": 20,
        "output_tokens": None,
        "total_tokens": 20,
        "audio_seconds": None,
    }


async def test_dimensions_are_asked_for(routing: Routing) -> None:
    await routing.set(embedding=routing.route(dimensions=5))
    found = await embed(routing, "text")
    assert (found["dimensions"], len(found["vectors"][0])) == (5, 5)
    assert routing.fake.asked[0].json["dimensions"] == 5


@pytest.mark.proves("providers.embeddings.vectors")
async def test_many_texts_keep_their_order(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    texts = [f"text number {number}" for number in range(256)]

    def backwards(asked: Asked) -> Answer:
        answer = embeddings(16)(asked)
        answer.body["data"].reverse()
        return answer

    routing.fake.script = backwards
    found = await embed(routing, *texts)
    assert found["vectors"] == [hash_vector(text, 16) for text in texts]
    sent = [asked.json["input"] for asked in routing.fake.asked]
    assert max(map(len, sent)) <= 10
    assert sorted(text for part in sent for text in part) == sorted(texts)
    assert len(await routing.attempts()) == len(sent)


async def test_an_answer_without_indices_is_in_order(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    routing.fake.answer({"data": [{"embedding": [1, 2]}, {"embedding": [3, 4.5]}]})
    found = await embed(routing, "a", "b")
    assert found["vectors"] == [[1.0, 2.0], [3.0, 4.5]]
    (attempt,) = await routing.attempts()
    assert (attempt["input_tokens"], attempt["total_tokens"]) == (None, None)


async def test_rules_of_the_provider_change_the_body(routing: Routing) -> None:
    rules = [
        {"op": "set", "path": "/encoding_format", "value": "float", "capabilities": ["embedding"]},
        {"op": "set", "path": "/temperature", "value": 1, "capabilities": ["chat"]},
    ]
    provider_id = await new_provider(routing.app, routing.fake.url, request_overrides=rules)
    await routing.set(embedding=routing.route(provider_id=provider_id))
    await embed(routing, "a")
    assert routing.fake.asked[0].json == {
        "model": "routed-model",
        "input": ["a"],
        "encoding_format": "float",
    }


@pytest.mark.proves("providers.embeddings.limits")
async def test_limits(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    for texts in ([], ["x"] * 257, ["x" * 32_001], [1], "text", None, [None]):
        answer = await routing.app.http.post(PATH, json={"texts": texts})
        assert answer.status_code == 422, str(texts)[:40]
    assert routing.fake.asked == []
    assert len((await embed(routing, "密" * 32_000))["vectors"]) == 1
    assert len((await embed(routing, *["x"] * 256))["vectors"]) == 256
    assert len((await embed(routing, ""))["vectors"]) == 1


FAILURES: dict[str, tuple[Answer, str]] = {
    "401": (Answer({"error": {"message": f"bad key {KEY}"}}, 401), "PROVIDER_AUTH_FAILED"),
    "403": (Answer({}, 403), "PROVIDER_AUTH_FAILED"),
    "429": (Answer({}, 429, {"retry-after": "0"}), "PROVIDER_RATE_LIMITED"),
    "500": (Answer({}, 500), "PROVIDER_UNAVAILABLE"),
    "404 model": (Answer({"error": {"code": "model_not_found"}}, 404), "MODEL_NOT_FOUND"),
    "redirect": (
        Answer(b"", 307, {"location": "http://127.0.0.1:1/elsewhere"}),
        "PROVIDER_PROTOCOL_ERROR",
    ),
    "html": (
        Answer(b"<html>login</html>", 200, {"content-type": "text/html"}),
        "PROVIDER_PROTOCOL_ERROR",
    ),
    "not json": (Answer(b"{"), "PROVIDER_INVALID_RESPONSE"),
    "dropped": (Answer(fault="drop"), "PROVIDER_UNAVAILABLE"),
    "cut": (
        Answer({"data": [{"embedding": [1.0] * 50}]}, fault="cut"),
        "PROVIDER_INVALID_RESPONSE",
    ),
    "no data": (Answer({}), "PROVIDER_INVALID_RESPONSE"),
    "a list": (Answer([[1.0]]), "PROVIDER_INVALID_RESPONSE"),
    "too few": (Answer({"data": []}), "PROVIDER_INVALID_RESPONSE"),
    "too many": (Answer({"data": [{"embedding": [1.0]}] * 2}), "PROVIDER_INVALID_RESPONSE"),
    "no vector": (Answer({"data": [{"index": 0}]}), "PROVIDER_INVALID_RESPONSE"),
    "empty": (Answer({"data": [{"embedding": []}]}), "PROVIDER_INVALID_RESPONSE"),
    "a word": (Answer({"data": [{"embedding": [1.0, "2"]}]}), "PROVIDER_INVALID_RESPONSE"),
    "true": (Answer({"data": [{"embedding": [1.0, True]}]}), "PROVIDER_INVALID_RESPONSE"),
    "base64": (Answer({"data": [{"embedding": "AACAPw=="}]}), "PROVIDER_INVALID_RESPONSE"),
    "NaN": (Answer(b'{"data": [{"embedding": [1.0, NaN]}]}'), "PROVIDER_INVALID_RESPONSE"),
    "infinity": (Answer(b'{"data": [{"embedding": [1, -Infinity]}]}'), "PROVIDER_INVALID_RESPONSE"),
    "too large": (Answer(b'{"data": [{"embedding": [1e400]}]}'), "PROVIDER_INVALID_RESPONSE"),
    "beyond float32": (Answer(b'{"data": [{"embedding": [1e39]}]}'), "PROVIDER_INVALID_RESPONSE"),
    "wrong index": (
        Answer({"data": [{"index": 1, "embedding": [1.0]}]}),
        "PROVIDER_INVALID_RESPONSE",
    ),
}


@pytest.mark.proves("providers.routing.fallback-no-local", "providers.embeddings.invalid-remote")
async def test_failures_without_a_local_model(
    routing: Routing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await routing.set(embedding=routing.route())
    for name, (answer, code) in FAILURES.items():
        routing.fake.script = lambda _, answer=answer: answer  # type: ignore[misc]
        found = await refused(routing, "text")
        assert found == (409, "LOCAL_MODEL_NOT_INSTALLED", {"fallback_reason": code}), name
    # The one that a kept connection swallowed went out again on a new one, as part of its attempt.
    assert len(routing.fake.asked) == len(FAILURES) + 1
    attempts = await routing.attempts()
    assert [(row["status"], row["error_code"]) for row in attempts] == [
        ("failed", code) for _, code in FAILURES.values()
    ]
    assert KEY not in caplog.text


@pytest.mark.proves("providers.usage.failed-attempts")
async def test_what_a_useless_answer_cost_is_counted(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    routing.fake.answer({"data": [], "usage": {"prompt_tokens": 3, "total_tokens": 3}})
    await refused(routing, "text")
    (attempt,) = await routing.attempts()
    assert (attempt["status"], attempt["error_code"]) == ("failed", "PROVIDER_INVALID_RESPONSE")
    assert (attempt["input_tokens"], attempt["total_tokens"]) == (3, 3)


@pytest.mark.proves("providers.embeddings.invalid-remote")
async def test_vectors_of_another_length(routing: Routing) -> None:
    await routing.set(embedding=routing.route(dimensions=4))
    routing.fake.answer({"data": [{"embedding": [1.0] * 5}]})
    _, _, details = await refused(routing, "text")
    assert details == {"fallback_reason": "EMBEDDING_DIMENSION_MISMATCH"}
    await routing.set(embedding=routing.route())
    routing.fake.answer({"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]})
    _, _, details = await refused(routing, "one", "two")
    assert details == {"fallback_reason": "PROVIDER_INVALID_RESPONSE"}
    # Each request is right by itself; together they are not.

    def by_count(asked: Asked) -> Answer:
        return embeddings(len(asked.json["input"]))(asked)

    routing.fake.script = by_count
    _, _, details = await refused(routing, *["text"] * 11)
    assert details == {"fallback_reason": "PROVIDER_INVALID_RESPONSE"}


@pytest.mark.proves("providers.crud.disabled", "providers.credentials.delete")
async def test_what_fails_before_anything_is_sent(routing: Routing) -> None:
    await routing.app.services.credentials.delete(CREDENTIAL)
    await routing.set(embedding=routing.route())
    _, _, details = await refused(routing, "text")
    assert details == {"fallback_reason": "PROVIDER_AUTH_FAILED"}
    off = await new_provider(routing.app, routing.fake.url, enabled=False)
    await routing.set(embedding=routing.route(provider_id=off))
    _, _, details = await refused(routing, "text")
    assert details == {"fallback_reason": "PROVIDER_DISABLED"}
    assert routing.fake.asked == []
    assert await routing.attempts() == []


@pytest.mark.proves("providers.credentials.reserved-resolver")
async def test_a_planted_reserved_credential_goes_nowhere(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    for credential_id in ("plugin.notes", "Plugin.notes", "mcp.server"):
        await routing.app.services.credentials.set(credential_id, "canary-of-a-plugin")
        await routing.app.services.database.write(
            lambda tx, planted=credential_id: tx.execute(  # type: ignore[misc]
                "UPDATE providers SET credential_id = ?", (planted,)
            )
        )
        _, _, details = await refused(routing, "text")
        assert details == {"fallback_reason": "CREDENTIAL_NAMESPACE_RESERVED"}
    assert routing.fake.asked == []


async def test_another_protocol_by_now(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    answer = await routing.app.http.patch(
        f"/api/providers/{routing.provider_id}", json={"provider_type": "anthropic"}
    )
    assert answer.status_code == 200
    _, _, details = await refused(routing, "text")
    assert details == {"fallback_reason": "MODEL_CAPABILITY_MISMATCH"}
    assert routing.fake.asked == []


@pytest.mark.proves("providers.credentials.put-replaces")
async def test_a_new_key_is_used_at_once(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    await embed(routing, "text")
    path = f"/api/credentials/{CREDENTIAL}"
    await routing.app.http.put(path, json={"secret": f"{KEY}-new"})
    await embed(routing, "text")
    sent = [asked.headers["authorization"] for asked in routing.fake.asked]
    assert sent == [f"Bearer {KEY}", f"Bearer {KEY}-new"]


@pytest.mark.proves("providers.usage.failed-attempts")
async def test_closing_the_request_closes_the_provider_s(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    routing.fake.answer(fault="hang")
    request = asyncio.create_task(routing.app.http.post(PATH, json={"texts": ["text"]}))
    await asyncio.wait_for(routing.fake.came.wait(), 10)
    request.cancel()
    await asyncio.wait_for(routing.fake.left.wait(), 10)

    async def is_written() -> bool:
        return bool(await routing.attempts())

    await eventually(is_written)
    attempts = await routing.attempts()
    assert [(row["status"], row["error_code"]) for row in attempts] == [("cancelled", None)]


@pytest.mark.proves("providers.usage.persistence")
async def test_the_ledger_outlives_the_provider(routing: Routing) -> None:
    await routing.set(embedding=routing.route())
    await embed(routing, "text")
    await routing.set(embedding=None)
    answer = await routing.app.http.delete(f"/api/providers/{routing.provider_id}")
    assert answer.status_code == 204
    used = (await routing.app.http.get("/api/usage")).json()
    assert [(model["provider_name"], model["request_count"]) for model in used["by_model"]] == [
        ("Routed", 1)
    ]


# -- with a local model ----------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Routing]:
    """An application with a real local model and a provider."""
    folder: Path = tmp_path_factory.mktemp("both")
    lay(folder / "models" / "minilm", embedding=OWN)
    async with (
        fake_models() as server,
        running_app(folder, models_dirs=(folder / "models",)) as app,
    ):
        yield Routing(app, server, await new_provider(app, server.url))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.proves(
    "providers.embeddings.shape", "providers.embeddings.vectors", "providers.routing.unset-local"
)
async def test_the_local_model_answers_without_a_route(both: Routing) -> None:
    await both.set(embedding=None)
    before = len(both.fake.asked)
    found = await embed(both, "a cat sat on a mat", "a kitten on the rug", "stocks fell today")
    assert (found["source"], found["model_id"], found["dimensions"]) == ("local", "MiniLM", 384)
    assert found["fallback_reason"] is None
    one, alike, other = found["vectors"]
    assert {len(vector) for vector in found["vectors"]} == {384}
    assert cosine(one, alike) > cosine(one, other) + 0.2
    assert len(both.fake.asked) == before
    attempt = (await both.attempts())[-1]
    assert (attempt["provider_id"], attempt["model"]) == ("local", "MiniLM")
    assert (attempt["status"], attempt["input_tokens"]) == ("completed", None)


async def is_noted(routing: Routing, code: str) -> bool:
    """Whether the newest fallback among the diagnostics is of the local model, for this reason."""
    records = (await routing.app.http.get("/api/local-models/diagnostics")).json()["items"]
    fallback: dict[str, Any] = next(
        (record for record in records if record["kind"] == "fallback"), {}
    )
    told = [fallback.get(name) for name in ("purpose", "status", "model_id", "fallback_reason")]
    return told == ["embedding", "completed", "MiniLM", code]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.proves(
    "providers.routing.fallback",
    "providers.embeddings.invalid-remote",
    "providers.embeddings.no-mix",
    "local-models.diagnostics.calls-and-fallbacks",
)
async def test_the_local_model_steps_in(both: Routing) -> None:
    await both.set(embedding=both.route())
    for name, (answer, code) in FAILURES.items():
        both.fake.script = lambda _, answer=answer: answer  # type: ignore[misc]
        found = await embed(both, "text")
        assert (found["source"], found["model_id"]) == ("local", "MiniLM"), name
        assert found["fallback_reason"] == code, name
        await eventually(lambda code=code: is_noted(both, code))  # type: ignore[misc]
    # One request of three fails: nothing of the others is kept.
    good = embeddings(384)
    both.fake.script = lambda asked: (
        good(asked) if "text 25" not in asked.body.decode() else Answer({}, 500)
    )
    texts = [f"text {number}" for number in range(30)]
    found = await embed(both, *texts)
    assert (found["source"], found["fallback_reason"]) == ("local", "PROVIDER_UNAVAILABLE")
    await both.set(embedding=None)
    local = await embed(both, *texts)
    for one, other in zip(found["vectors"], local["vectors"], strict=True):
        assert cosine(one, other) > 0.999


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.proves("providers.routing.fallback")
async def test_a_provider_that_is_not_there(both: Routing) -> None:
    async with fake_models() as gone:
        url = gone.url
    provider_id = await new_provider(both.app, url)
    await both.set(embedding=both.route(provider_id=provider_id))
    found = await embed(both, "text")
    assert (found["source"], found["fallback_reason"]) == ("local", "PROVIDER_UNAVAILABLE")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_client_reads_strict_json(both: Routing) -> None:
    await both.set(embedding=None)
    answer: httpx.Response = await both.app.http.post(PATH, json={"texts": ["text"]})

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(answer.text, parse_constant=refuse)
