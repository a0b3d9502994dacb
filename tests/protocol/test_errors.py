"""Whatever goes wrong, wherever: one error object, with nothing in it that a client must not see."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.protocol.conftest import Answers
from tests.protocol.live import LiveApp, error_of
from tests.protocol.operations import (
    BY_NAME,
    METHODS,
    OPERATIONS,
    ROUTE_METHODS,
    WITH_JSON,
    Operation,
)
from tests.protocol.values import leaves, replaced

pytestmark = pytest.mark.usefixtures("no_real_work")

CANARY = "canary-5b1f0d7e93"
INNER = "canary-of-an-exception"

every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)
with_json = pytest.mark.parametrize("operation", WITH_JSON, ids=str)


def check_validation_error(answer: httpx.Response) -> None:
    """Check that an answer is `VALIDATION_ERROR` and says where."""
    assert answer.status_code == 422, answer.text
    error = error_of(answer)
    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"]["errors"]
    for entry in error["details"]["errors"]:
        assert set(entry) == {"loc", "message"}
        assert isinstance(entry["loc"], list) and entry["loc"][0] in (
            "body",
            "query",
            "path",
            "header",
        )
        assert isinstance(entry["message"], str) and entry["message"]


def send_raw(
    answers: Answers, operation: Operation, content: bytes, **headers: str
) -> httpx.Response:
    request = answers.request(operation)
    return answers.client(operation).request(
        operation.method,
        operation.address(request.path),
        params=dict(request.query) or None,
        content=content,
        headers={"Content-Type": "application/json", **headers},
    )


@pytest.mark.proves(
    "protocol.errors.unknown-route", "protocol.errors.everywhere", "protocol.errors.shape"
)
@pytest.mark.parametrize("method", [method.upper() for method in METHODS])
@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api", "/nothing", "/host/nothing", "/api/%F0%9F%98%80/x"]
)
def test_unknown_route(app: LiveApp, method: str, path: str) -> None:
    answer = app.host.request(method, path)
    assert answer.status_code == 404
    error = error_of(answer)
    assert (error["code"], error["details"]) == ("RESOURCE_NOT_FOUND", {})


@pytest.mark.proves(
    "protocol.errors.wrong-method", "protocol.errors.everywhere", "protocol.errors.shape"
)
@pytest.mark.parametrize("path", sorted(ROUTE_METHODS))
def test_wrong_method(app: LiveApp, path: str) -> None:
    address = path.replace("{", "").replace("}", "")
    for method in {method.upper() for method in METHODS} - ROUTE_METHODS[path]:
        answer = app.host.request(method, address)
        assert answer.status_code == 405, f"{method} {path}"
        assert error_of(answer)["code"] == "METHOD_NOT_ALLOWED"
        allowed = {name.strip() for name in answer.headers["allow"].split(",")}
        assert allowed - {"HEAD", "OPTIONS"} == ROUTE_METHODS[path]


@pytest.mark.proves(
    "protocol.status.401-403", "protocol.errors.everywhere", "protocol.errors.shape"
)
@every_operation
def test_nobody_else_gets_in(app: LiveApp, answers: Answers, operation: Operation) -> None:
    def refused(client: httpx.Client, **headers: str) -> tuple[int, str]:
        answer = client.request(operation.method, operation.address(), headers=headers)
        assert answer.is_error, answer.text
        return answer.status_code, error_of(answer)["code"]

    client = answers.client(operation)
    assert refused(client, Host="sidecar.example") == (403, "HOST_NOT_ALLOWED")
    assert refused(client, Origin="https://example.org") == (403, "ORIGIN_NOT_ALLOWED")
    if not operation.is_open:
        assert refused(app.anonymous) == (401, "SESSION_INVALID")
        assert refused(app.anonymous, Authorization="Bearer x") == (401, "SESSION_INVALID")
    if operation.host_only:
        assert refused(app.session) == (403, "HOST_TOKEN_REQUIRED")


@pytest.mark.proves(
    "protocol.errors.malformed-json",
    "protocol.errors.everywhere",
    "protocol.errors.validation",
    "protocol.errors.validation-no-echo",
    "protocol.status.422",
)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" ",
        b"{",
        b'{"a": ' + CANARY.encode(),
        b'{"a": "' + CANARY.encode(),
        b"\xff\xfe" + CANARY.encode("utf-16-le"),
        b'{"a": "\xff' + CANARY.encode() + b'"}',
        b"[" * 50_000,
        b'{"a": ' + b"9" * 5_000 + b"}x",
        b"null",
        b"[]",
        b'"' + CANARY.encode() + b'"',
        b"1",
    ],
    ids=lambda content: content[:14].decode("latin-1"),
)
@with_json
def test_bodies_that_are_no_object(
    app: LiveApp, answers: Answers, operation: Operation, content: bytes
) -> None:
    answer = send_raw(answers, operation, content)
    check_validation_error(answer)
    assert CANARY not in answer.text + app.log_text


@pytest.mark.proves("protocol.errors.validation", "protocol.errors.malformed-json")
@with_json
def test_body_of_another_media_type(answers: Answers, operation: Operation) -> None:
    answer = send_raw(answers, operation, b"a=1", **{"Content-Type": "text/plain"})
    assert answer.status_code in (415, 422), answer.text
    error_of(answer)


@pytest.mark.proves(
    "protocol.errors.validation",
    "protocol.errors.validation-no-echo",
    "protocol.errors.everywhere",
    "protocol.status.422",
)
@with_json
def test_wrong_types_are_told_without_the_value(
    app: LiveApp, answers: Answers, operation: Operation
) -> None:
    request = answers.request(operation)
    names = {*operation.json_schema.get("properties", {}), *request.json}  # type: ignore[union-attr]
    places = {place for place, _ in leaves(request.json)} | {(name,) for name in names}
    refused = 0
    for place in places:
        for wrong in ({"secret": CANARY}, [CANARY], CANARY):
            sent = replaced(request.json, place, wrong)
            changed = replace(request, json=sent)
            answer = changed.send(answers.client(operation), operation)
            assert answer.status_code < 500, answer.text
            if answer.status_code == 422:
                assert CANARY not in answer.text
                error = error_of(answer)
                assert error["details"]["errors"], error
                refused += 1
    assert refused or not places
    assert CANARY not in app.log_text


@pytest.mark.proves("protocol.errors.validation", "protocol.errors.validation-no-echo")
@pytest.mark.parametrize(
    "operation", [operation for operation in OPERATIONS if operation.queries], ids=str
)
def test_wrong_query_values_are_told_without_the_value(
    app: LiveApp, answers: Answers, operation: Operation
) -> None:
    request = answers.request(operation)
    for name in operation.queries:
        query = {**request.query, name: CANARY}
        changed = replace(request, query=query)
        answer = changed.send(answers.client(operation), operation)
        if answer.is_error:
            assert answer.status_code in (400, 404, 409, 422), answer.text
            error_of(answer)
            assert CANARY not in answer.text + app.log_text
        if answer.status_code == 422:
            check_validation_error(answer)


def nested(depth: int) -> Any:
    """A list in a list, and so on."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


NASTY: list[Any] = [
    "",
    "\x00",
    "\ud800",
    "a\udfffb",
    "\r\n\r\n",
    "x" * 70_000,
    -1,
    2**63,
    10**400,
    1.5,
    True,
    None,
    [],
    {},
    [[[[[]]]]],
    {"\x00\ud800": "\ud800"},
    {"\x00": {"a\u2028": 10**400}},
    {"x": nested(80)},
    {"x": nested(300)},
]


@pytest.mark.proves("protocol.errors.everywhere", "protocol.errors.no-leak")
@with_json
def test_no_value_makes_the_server_fail(answers: Answers, operation: Operation) -> None:
    request = answers.request(operation)
    names = {*operation.json_schema.get("properties", {}), *request.json}  # type: ignore[union-attr]
    places = {place for place, _ in leaves(request.json)} | {(name,) for name in names}
    for place in places:
        for value in NASTY:
            content = json.dumps(replaced(request.json, place, value)).encode()
            check_harmless(send_raw(answers, operation, content), operation, (place, value))
        raw = json.dumps(replaced(request.json, place, "@@")).encode()
        for literal in (b"NaN", b"-Infinity", b"1e999"):
            content = raw.replace(b'"@@"', literal)
            check_harmless(send_raw(answers, operation, content), operation, (place, literal))


def check_harmless(answer: httpx.Response, operation: Operation, what: object) -> None:
    """Check that an answer is a documented one and no failure of the server itself."""
    assert answer.status_code != 500, (what, answer.text)
    assert str(answer.status_code) in operation.spec["responses"], (what, answer.text)
    if answer.is_error:
        error = error_of(answer)
        assert error["code"] in operation.codes(answer.status_code), (what, error)
        check_leaks_nothing(answer.text)


LEAKS = (
    "Traceback",
    "Error(",
    "Exception",
    ".py",
    "sqlite",
    "SELECT ",
    "pydantic",
    "/site-packages",
)


def check_leaks_nothing(text: str) -> None:
    """Check that no part of the machine shows."""
    assert not [leak for leak in LEAKS if leak in text], text


@pytest.fixture
def failing(app: LiveApp) -> Iterator[FastAPI]:
    """The application with routes that raise what nobody expects."""
    api = app.api
    count = len(api.router.routes)

    @api.get("/api/failing")
    async def fail() -> None:
        raise RuntimeError(f"{INNER} in /home/user/secret.db: SELECT password")

    @api.get("/api/failing-sync")
    def fail_in_thread() -> None:
        raise OSError(2, f"No such file {INNER}", "/home/user/secret.db")

    yield api
    del api.router.routes[count:]


@pytest.mark.proves(
    "protocol.errors.internal",
    "protocol.errors.everywhere",
    "protocol.errors.no-leak",
    "protocol.errors.details-object",
)
@pytest.mark.parametrize("path", ["/api/failing", "/api/failing-sync"])
def test_unexpected_exception(app: LiveApp, failing: FastAPI, path: str) -> None:
    for _ in range(3):
        answer = app.session.get(path)
        assert answer.status_code == 500
        # The server hangs up after it; the next request must not be sent on this connection.
        assert answer.headers["connection"] == "close"
        error = error_of(answer)
        assert (error["code"], error["details"]) == ("INTERNAL_ERROR", {})
        assert INNER not in answer.text and "/home" not in answer.text
        assert app.anonymous.get("/health").status_code == 200
    assert "Traceback" in app.log_text


IDS = [
    "unknown",
    "transcription_00000000000000000000000000",
    "export_1",
    "2f1c5e1e-6a5b-4a51-9d0f-0b8f4a1c9e77",
    "0",
    "-1",
    "null",
    "😀📝",
    "x" * 300,
    "a/b",
    "../../etc/passwd",
    "a%2Fb",
    " ",
    "a b?c#d;e&f",
    "\x00",
    "' OR 1=1 --",
    "C:\\Windows\\win.ini",
]

# The client chooses these ids itself: one that is well formed names something, if only something empty.
CHOSEN_BY_CLIENTS = {"credential_id": r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"}


@pytest.mark.proves("protocol.ids.opaque", "protocol.status.404", "protocol.sse.not-found")
@pytest.mark.parametrize(
    "operation", [operation for operation in OPERATIONS if operation.id_parameters], ids=str
)
def test_unknown_ids(answers: Answers, operation: Operation) -> None:
    request, _ = answers.of(operation)
    for name in operation.id_parameters:
        well_formed = CHOSEN_BY_CLIENTS.get(name)
        for unknown in IDS:
            if well_formed and re.fullmatch(well_formed, unknown):
                continue
            changed = replace(request, path={**request.path, name: unknown})
            answer = changed.send(answers.client(operation), operation)
            assert answer.status_code == 404, (unknown, answer.text)
            code = error_of(answer)["code"]
            assert code in operation.codes(404) & not_found_codes(operation, name), unknown


def not_found_codes(operation: Operation, name: str) -> set[str]:
    """The codes for an unknown *name*: those of reading the resource itself, if that can be read."""
    own_path = operation.path.partition("{" + name + "}")[0] + "{" + name + "}"
    reading = BY_NAME.get(f"GET {own_path}", operation)
    return reading.codes(404)
