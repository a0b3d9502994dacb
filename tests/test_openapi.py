"""The OpenAPI document: always the same bytes, complete, and true to what the server answers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import BaseRoute

from host_bridge.protocol import SessionSettings
from sidecar.app import build_api, offline_openapi
from sidecar.kernel.catalogue import ERRORS
from sidecar.kernel.settings import resolve_settings
from sidecar.services import build_services
from tests.app_client import ROOT, running_app

DOCUMENT = offline_openapi()
SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
REFERENCE = "#/components/schemas/"
ERROR_CONTENT = {"application/json": {"schema": {"$ref": f"{REFERENCE}ErrorResponse"}}}
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
# Spelled as the gateway's source spells it.
CAMEL_CASE_PATHS = "/api/hermes/client"


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    path: str
    method: str
    content: dict[str, Any]

    @property
    def parameters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.content.get("parameters", [])
        return found

    @property
    def responses(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.content["responses"]
        return found

    def codes(self, status: int) -> set[str]:
        """Return the error codes that the document names for *status*."""
        listed = self.responses.get(str(status), {"description": ""})["description"]
        return set(re.findall(r"^`(\w+)`: ", listed, re.MULTILINE))

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


OPERATIONS = [
    Operation(path, method, content)
    for path, item in DOCUMENT["paths"].items()
    for method, content in item.items()
]

each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)


def printed(hash_seed: str) -> bytes:
    """Return what `sidecar openapi` prints in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sidecar", "openapi"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout


def schemas_below(node: Any, seen: set[str]) -> Iterator[dict[str, Any]]:
    """Yield every object with properties that *node* holds or refers to; *seen* names the models gone through."""
    if isinstance(node, list):
        for item in node:
            yield from schemas_below(item, seen)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("properties"), dict):
        yield node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield from schemas_below(SCHEMAS[reference.removeprefix(REFERENCE)], seen)
    for value in node.values():
        yield from schemas_below(value, seen)


def check_body(content: dict[str, Any], what: str) -> None:
    """A JSON body has a model with a name; any other media type is named."""
    assert content, f"{what} has no media type"
    for media_type, body in content.items():
        assert re.fullmatch(r"[a-z]+/[a-z0-9.+*-]+|\*/\*", media_type), what
        if media_type == "application/json":
            name = body["schema"].get("$ref", "").removeprefix(REFERENCE)
            assert name in SCHEMAS, f"{what} has no named model: {body['schema']}"


@pytest.mark.proves("protocol.openapi.served")
async def test_the_command_prints_what_the_server_serves_and_always_the_same(
    tmp_path: Path,
) -> None:
    first, second = printed("1"), printed("4711")
    async with running_app(tmp_path, open_vault=False) as app:
        served = await app.http.get("/openapi.json")
        pages = [await app.http.get("/docs"), await app.host.get("/docs")]
        refused = [await app.anonymous.get(path) for path in ("/openapi.json", "/docs")]

    assert first == second
    # Compared as text: the order counts too.
    assert json.dumps(json.loads(first)) == json.dumps(served.json()) == json.dumps(DOCUMENT)
    assert [page.status_code for page in (served, *pages)] == [200, 200, 200]
    assert [answer.status_code for answer in refused] == [401, 401]
    for path in DOCUMENT["paths"]:
        assert f"<code>{path}</code>" in pages[0].text


def served_paths(routes: list[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Yield path and method of every route, also of those in included routers."""
    for route in routes:
        inner = getattr(route, "routes", None) or getattr(
            getattr(route, "original_router", None), "routes", None
        )
        if inner:
            yield from served_paths(inner)
        elif hasattr(route, "path"):
            for method in getattr(route, "methods", None) or ():
                yield getattr(route, "path_format", route.path), method.lower()


@pytest.mark.proves("protocol.openapi.served")
def test_every_api_and_host_path_that_is_served_is_in_the_document(tmp_path: Path) -> None:
    settings = resolve_settings(SessionSettings(), data_dir=tmp_path / "data")
    api = build_api(build_services(settings), lambda: None)
    served = set(served_paths(list(api.routes)))
    documented = {(operation.path, operation.method) for operation in OPERATIONS}

    assert ("/api/system/info", "get") in served
    assert {found for found in served if found[0].startswith(("/api/", "/host/"))} <= documented
    assert documented <= served


def test_paths_and_models_are_sorted() -> None:
    assert list(DOCUMENT["paths"]) == sorted(DOCUMENT["paths"])
    assert list(SCHEMAS) == sorted(SCHEMAS)


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [operation.content["operationId"] for operation in OPERATIONS]

    assert len(set(names)) == len(names)
    assert all(SNAKE_CASE.fullmatch(name) for name in names)


@pytest.mark.proves("protocol.openapi.models")
@each_operation
def test_an_operation_is_described_and_its_bodies_have_models(operation: Operation) -> None:
    assert operation.content.get("summary", "").strip()
    assert operation.content.get("description", "").strip()
    if "requestBody" in operation.content:
        check_body(operation.content["requestBody"]["content"], "the request")
    successes = {
        status: operation.responses[status] for status in operation.responses if status < "4"
    }
    assert successes
    for status, response in successes.items():
        if status in ("204", "304"):
            assert "content" not in response
        else:
            check_body(response.get("content", {}), f"the response {status}")


@pytest.mark.proves("protocol.openapi.models")
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_model_is_described_and_not_empty(name: str) -> None:
    schema = SCHEMAS[name]

    if not name.startswith("Body_"):  # made by the framework of a form's fields
        assert schema.get("description", "").strip(), f"{name} has no description"
    content = ("properties", "enum", "const", "oneOf", "anyOf", "allOf", "$ref", "items")
    assert any(schema.get(key) for key in (*content, "additionalProperties")) or schema.get(
        "type"
    ) not in (None, "object")


@pytest.mark.proves("protocol.errors.in-openapi")
@each_operation
def test_every_error_response_has_the_error_model_and_names_its_codes(operation: Operation) -> None:
    errors = {int(status) for status in operation.responses if not status < "4"}

    for status in errors:
        assert operation.responses[str(status)]["content"] == ERROR_CONTENT
        codes = operation.codes(status)
        assert codes, f"{status} names no code"
        assert {ERRORS[code].status for code in codes} == {status}
    assert {403, 500, 503} <= errors
    assert operation.path == "/health" or "SESSION_INVALID" in operation.codes(401)
    if "requestBody" in operation.content:
        assert "VALIDATION_ERROR" in operation.codes(422)
        assert operation.codes(413)


@pytest.mark.proves("protocol.json.snake-case")
@each_operation
def test_properties_and_query_parameters_are_snake_case(operation: Operation) -> None:
    if operation.path.startswith(CAMEL_CASE_PATHS):
        pytest.skip("camelCase, as its source writes it")
    names = {p["name"] for p in operation.parameters if p["in"] in ("query", "path")}
    for schema in schemas_below(operation.content, set()):
        names |= schema["properties"].keys()

    assert {name for name in names if not SNAKE_CASE.fullmatch(name)} == set()


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("without a body", {}),
    ("with an empty object", {"json": {}}),
    ("with a list", {"json": []}),
    ("with broken JSON", {"content": b"{", "headers": {"content-type": "application/json"}}),
    ("with another media type", {"content": b"x", "headers": {"content-type": "text/plain"}}),
    ("with an empty form", {"files": {"other": ("a.txt", b"")}}),
]


async def error_of(
    client: httpx.AsyncClient, operation: Operation, arguments: dict[str, Any]
) -> tuple[int, str] | None:
    """Ask for a resource that nobody made; return status and code of an error, None for a success."""
    path = re.sub(r"\{\w+\}", "unknown_1", operation.path)
    # A stream that begins is none of our business here, and might not end.
    async with client.stream(operation.method, path, **arguments) as response:
        if response.status_code < 400:
            return None
        await response.aread()
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.proves("protocol.errors.in-openapi")
async def test_the_errors_that_bad_requests_meet_are_in_the_document(tmp_path: Path) -> None:
    unlisted: set[str] = set()
    met: set[str] = set()
    async with running_app(tmp_path, open_vault=False) as app:
        for operation in OPERATIONS:
            for client in (app.anonymous, app.http, app.host):
                for situation, arguments in BODIES:
                    error = await error_of(client, operation, arguments)
                    if error is None:
                        continue
                    met.add(error[1])
                    if error[1] not in operation.codes(error[0]):
                        unlisted.add(f"{operation} {situation}: {error[0]} {error[1]}")

    assert sorted(unlisted) == []
    assert {"SESSION_INVALID", "HOST_TOKEN_REQUIRED", "VALIDATION_ERROR"} <= met
