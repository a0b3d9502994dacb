"""What goes wrong at a provider, in the codes that a client knows."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.catalogue import ERRORS
from sidecar.kernel.errors import ProjectError
from sidecar.providers.calls.retries import RetryPolicy
from sidecar.providers.calls.transport import Timeouts
from sidecar.providers.schemas.model_call import Message
from tests.fakes.upstream import Answer, Call, Turn, fake_upstream
from tests.providers.bench import (
    HELLO,
    PROTOCOLS,
    Bench,
    bench_in,
    failure,
    fake,
    joined,
)

ONCE = RetryPolicy(repeats=0)
LEAK = "sk-leaked-0123456789abcdef at /home/somebody/app.py"


@pytest.fixture
async def once(tmp_path: Path) -> Any:
    async with bench_in(tmp_path, retries=ONCE) as made:
        yield made


REFUSALS = [
    (401, "invalid_api_key", "Incorrect API key", "PROVIDER_AUTH_FAILED", 502),
    (403, "permission_error", "no", "PROVIDER_AUTH_FAILED", 502),
    (402, "insufficient_balance", "Insufficient Balance", "PROVIDER_RATE_LIMITED", 429),
    (429, "rate_limit_exceeded", "slow down", "PROVIDER_RATE_LIMITED", 429),
    (408, "timeout", "too slow", "PROVIDER_TIMEOUT", 504),
    (500, "server_error", "oops", "PROVIDER_UNAVAILABLE", 503),
    (502, "bad_gateway", "oops", "PROVIDER_UNAVAILABLE", 503),
    (529, "overloaded_error", "Overloaded", "PROVIDER_UNAVAILABLE", 503),
    (400, "invalid_request_error", "what?", "PROVIDER_PROTOCOL_ERROR", 502),
    (404, "not_found", "no such path", "PROVIDER_PROTOCOL_ERROR", 502),
    (405, "method_not_allowed", "no", "PROVIDER_PROTOCOL_ERROR", 502),
    (418, "teapot", "no", "PROVIDER_PROTOCOL_ERROR", 502),
    (404, "model_not_found", "The model does not exist", "MODEL_NOT_FOUND", 404),
    (404, "not_found_error", "model: claude-nope", "MODEL_NOT_FOUND", 404),
    (404, "", 'model "nope" not found, try pulling it first', "MODEL_NOT_FOUND", 404),
    (400, "invalid_request_error", "Model Not Exist", "MODEL_NOT_FOUND", 404),
    (400, "1211", "模型不存在，请检查模型代码。", "MODEL_NOT_FOUND", 404),
    (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens.",
        "MODEL_CONTEXT_LENGTH_EXCEEDED",
        400,
    ),
    (
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "MODEL_CONTEXT_LENGTH_EXCEEDED",
        400,
    ),
    (
        400,
        "exceed_context_size_error",
        "the request exceeds the available context size",
        "MODEL_CONTEXT_LENGTH_EXCEEDED",
        400,
    ),
    (
        400,
        "invalid_parameter_error",
        "Range of input length should be [1, 30720]",
        "MODEL_CONTEXT_LENGTH_EXCEEDED",
        400,
    ),
    (400, "1261", "Prompt 超长", "MODEL_CONTEXT_LENGTH_EXCEEDED", 400),
    (400, "", '"gemma:2b" does not support tools', "MODEL_CAPABILITY_MISMATCH", 400),
    (404, "", "No endpoints found that support tool use.", "MODEL_CAPABILITY_MISMATCH", 400),
    (404, "", "This is not a chat model and thus not supported", "MODEL_CAPABILITY_MISMATCH", 400),
    (500, "", "image input is not supported - hint: mmproj", "MODEL_CAPABILITY_MISMATCH", 400),
    (413, "request_too_large", "too big", "MODEL_CONTEXT_LENGTH_EXCEEDED", 400),
]


@pytest.mark.proves(
    "providers.errors.auth",
    "providers.errors.rate-limited",
    "providers.errors.unavailable",
    "providers.errors.protocol",
    "providers.errors.model-not-found",
    "providers.errors.context-length",
    "providers.errors.capability-mismatch",
    "providers.errors.safe-details",
    "providers.adapter.no-vendor-shapes",
)
@pytest.mark.parametrize(
    ("status", "code", "words", "expected", "own_status"),
    REFUSALS,
    ids=lambda value: str(value)[:24],
)
async def test_a_refusal(
    once: Bench, status: int, code: str, words: str, expected: str, own_status: int
) -> None:
    for protocol in PROTOCOLS:
        target = await once.target(protocol)
        for streamed in (True, False):
            once.upstream.answers.append(fake(protocol).refusal(status, code, f"{words} {LEAK}"))
            if streamed:
                events = await once.stream(target)
                assert failure(events) == expected, protocol
                told = events[0].data
                assert told.keys() == {"code", "message", "details"}
            else:
                with pytest.raises(ProjectError) as raised:
                    await once.complete(target)
                assert (raised.value.code, raised.value.status) == (expected, own_status)
                told = raised.value.body("en")["error"]
            assert told["details"] == {
                "provider_id": target.provider_id,
                "model": "m",
                "upstream_status": status,
            }
            assert "leaked" not in json.dumps(told) and "somebody" not in json.dumps(told)


@pytest.mark.proves("providers.errors.rate-limited")
@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("37", 37, 37),
        (format_datetime(datetime.now(UTC) + timedelta(seconds=3600), usegmt=True), 3000, 3600),
    ],
    ids=["seconds", "date"],
)
async def test_the_wait_that_is_asked_for_is_passed_on(
    bench: Bench, value: str, low: int, high: int
) -> None:
    target = await bench.target()
    refusal = fake("openai_chat").refusal(429, "rate_limit", "slow", Retry_After=value)
    bench.upstream.answers += [refusal, refusal]
    with pytest.raises(ProjectError) as raised:
        await bench.complete(target)
    assert low <= int(raised.value.headers["Retry-After"]) <= high
    events = await bench.stream(target)
    assert failure(events) == "PROVIDER_RATE_LIMITED"
    assert low <= events[-2].data["details"]["retry_after_seconds"] <= high
    # A wait that long is the user's to decide on.
    assert len(bench.upstream.received) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_refusal_that_did_nothing_is_asked_again(
    bench: Bench, protocol: str, streamed: bool
) -> None:
    target = await bench.target(protocol)
    good = fake(protocol).stream if streamed else fake(protocol).whole
    bench.upstream.answers += [
        fake(protocol).refusal(429, "rate_limit_error", "slow", Retry_After="0"),
        fake(protocol).refusal(503, "overloaded_error", "busy"),
        good(Turn(text=["好"], usage=(1, 1))),
    ]
    if streamed:
        assert joined(await bench.stream(target)) == "好"
    else:
        assert (await bench.complete(target)).content == "好"
    told = [(row["status"], row["error_code"]) for row in await bench.attempts()]
    assert told == [
        ("failed", "PROVIDER_RATE_LIMITED"),
        ("failed", "PROVIDER_UNAVAILABLE"),
        ("completed", None),
    ]


@pytest.mark.parametrize(
    "refusal",
    [
        fake("openai_chat").refusal(500, "server_error", "oops"),
        fake("openai_chat").refusal(429, "insufficient_quota", "You exceeded your current quota"),
        fake("openai_chat").refusal(401, "invalid_api_key", "no"),
        Answer(no_head=True, end="eof"),
    ],
    ids=["may have been done", "used up", "key", "hung up"],
)
async def test_what_is_not_asked_again(bench: Bench, refusal: Answer) -> None:
    target = await bench.target()
    bench.upstream.answers += [refusal, fake("openai_chat").stream(Turn(text=["好"]))]
    failure(await bench.stream(target))
    assert len(bench.upstream.received) == 1
    assert len(await bench.attempts()) == 1


@pytest.mark.proves("providers.errors.unavailable")
async def test_nobody_answers(bench: Bench) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    target = await bench.target(base_url=url)
    assert failure(await bench.stream(target)) == "PROVIDER_UNAVAILABLE"
    with pytest.raises(ProjectError) as raised:
        await bench.complete(target)
    assert (raised.value.code, raised.value.status) == ("PROVIDER_UNAVAILABLE", 503)


@pytest.mark.proves("providers.errors.unavailable")
async def test_no_such_host(once: Bench) -> None:
    target = await once.target(base_url="http://no-such-host.invalid/v1")
    assert failure(await once.stream(target)) == "PROVIDER_UNAVAILABLE"


@pytest.mark.proves("providers.errors.unavailable")
async def test_a_server_without_tls(once: Bench) -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        target = await once.target(base_url=f"https://127.0.0.1:{port}")
        assert failure(await once.stream(target)) == "PROVIDER_UNAVAILABLE"


@pytest.mark.proves("providers.errors.timeout")
async def test_a_whole_answer_that_does_not_come(tmp_path: Path) -> None:
    quick = Timeouts(connect=5, first_byte=0.2, silence=0.2, whole=0.2)
    async with bench_in(tmp_path, timeouts=quick) as bench:
        target = await bench.target()
        bench.upstream.answers.append(Answer(no_head=True, end="hold"))
        with pytest.raises(ProjectError) as raised:
            await bench.complete(target)
        assert (raised.value.code, raised.value.status) == ("PROVIDER_TIMEOUT", 504)


@pytest.fixture
def deaf() -> Iterator[str]:
    """A port that takes connections into its queue until that is full, and says nothing."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_connections_that_nobody_takes(tmp_path: Path, deaf: str) -> None:
    quick = Timeouts(connect=0.3, first_byte=0.3, silence=0.3, whole=0.3)
    async with bench_in(tmp_path, timeouts=quick, retries=ONCE) as bench:
        target = await bench.target(base_url=deaf)
        for _ in range(3):
            assert failure(await bench.stream(target)) == "PROVIDER_TIMEOUT"


HTML = Answer(pieces=[b"<html>login</html>"], content_type="text/html")


@pytest.mark.proves("providers.errors.protocol")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_page_instead_of_an_answer(once: Bench, protocol: str) -> None:
    target = await once.target(protocol)
    once.upstream.answers += [HTML, HTML]
    assert failure(await once.stream(target)) == "PROVIDER_PROTOCOL_ERROR"
    with pytest.raises(ProjectError) as raised:
        await once.complete(target)
    assert (raised.value.code, raised.value.status) == ("PROVIDER_PROTOCOL_ERROR", 502)


@pytest.mark.proves("providers.errors.invalid-response")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [b"{broken", b"[]", b"{}", b'{"choices": []}', b'{"output": 1}'])
async def test_an_answer_without_its_parts(once: Bench, protocol: str, body: bytes) -> None:
    target = await once.target(protocol)
    once.upstream.answers.append(Answer(pieces=[body]))
    with pytest.raises(ProjectError) as raised:
        await once.complete(target)
    assert (raised.value.code, raised.value.status) == ("PROVIDER_INVALID_RESPONSE", 502)


@pytest.mark.proves("providers.errors.invalid-response")
@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "ollama"])
async def test_a_whole_answer_with_broken_arguments(once: Bench, protocol: str) -> None:
    target = await once.target(protocol)
    once.upstream.answers.append(fake(protocol).whole(Turn(calls=[Call("a", "t", ['{"a"'])])))
    with pytest.raises(ProjectError) as raised:
        await once.complete(target)
    assert raised.value.code == "PROVIDER_INVALID_RESPONSE"


@pytest.mark.proves("providers.errors.stream-codes-status")
def test_the_codes_of_broken_streams_are_in_the_table() -> None:
    assert ERRORS["PROVIDER_STREAM_TRUNCATED"].status == 502
    assert ERRORS["PROVIDER_STREAM_INTERRUPTED"].status == 502


@pytest.mark.proves("providers.adapter.no-redirect-with-key", "providers.errors.protocol")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_key_never_follows_a_redirect(once: Bench, protocol: str, status: int) -> None:
    await once.credentials.set("vendor", "sk-canary-of-redirects")
    target = await once.target(protocol, credential_id="vendor")
    with fake_upstream() as elsewhere:
        moved = Answer(status, headers={"Location": f"{elsewhere.url}/chat/completions"})
        once.upstream.answers += [moved, moved]
        assert failure(await once.stream(target)) == "PROVIDER_PROTOCOL_ERROR"
        with pytest.raises(ProjectError):
            await once.complete(target)
        assert elsewhere.received == []
    for request in once.upstream.received:
        sent = request.headers.get("authorization") or request.headers.get("x-api-key")
        assert sent is not None and sent.endswith("sk-canary-of-redirects")


async def test_a_stream_without_end_is_given_up(
    once: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.providers.calls.transport.ANSWER_BYTES", 10_000)
    target = await once.target()
    once.upstream.answers.append(fake("openai_chat").stream(Turn(text=["x" * 5000] * 10)))
    assert failure(await once.stream(target)) == "PROVIDER_INVALID_RESPONSE"


async def test_many_streams_at_once_keep_apart(bench: Bench) -> None:
    gate = threading.Event()
    target = await bench.target()

    def respond(request: Any) -> Answer:
        said = request.json["messages"][0]["content"]
        made: Answer = fake("openai_chat").stream(Turn(text=[said] * 20))
        made.before_head = gate
        return made

    bench.upstream.respond = respond
    requests = [replace(HELLO, messages=(Message("user", f"{n},"),)) for n in range(20)]
    following = asyncio.gather(*(bench.stream(target, request) for request in requests))
    assert await asyncio.to_thread(bench.upstream.wait_for, 20)
    gate.set()
    for number, events in enumerate(await following):
        assert joined(events) == f"{number}," * 20
