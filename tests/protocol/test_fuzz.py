"""Requests made up from the OpenAPI document: no answer but those that it names, and never a failure of the server."""

from typing import Any, Final

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance

from tests.protocol.conftest import Answers
from tests.protocol.operations import DOCUMENT, JSON_TYPE, OPERATIONS, Operation
from tests.protocol.test_errors import check_harmless

pytestmark = pytest.mark.usefixtures("no_real_work")

# A made-up path could be a real folder of this machine, and would become the vault.
TRIED = [operation for operation in OPERATIONS if str(operation) != "POST /host/vault"]

SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)


def cases(operation: Operation, mode: GenerationMode) -> st.SearchStrategy[Any]:
    """Requests that fit an operation's schema, or don't."""
    found: st.SearchStrategy[Any] = SCHEMA[operation.path][operation.method].as_strategy(
        generation_mode=mode
    )
    return found


# A header was made up that no HTTP message can hold, and the request never reached the application.
NOT_HTTP: Final = b"Invalid HTTP request received."


def send(client: httpx.Client, case: Any, path: dict[str, str] | None) -> httpx.Response:
    """Send a made-up request; with *path* to something that exists."""
    if path is not None:
        case.path_parameters = dict(path)
    with requests.Session() as session:
        session.trust_env = False
        answer = case.call(
            base_url=str(client.base_url).rstrip("/"),
            session=session,
            headers={"Authorization": client.headers["Authorization"]},
        )
    media_type = answer.headers.get("content-type", [""])[0]
    if media_type.startswith(JSON_TYPE):
        case.validate_response(answer, checks=[response_schema_conformance])
    return httpx.Response(
        answer.status_code, headers={"content-type": media_type}, content=answer.content
    )


@pytest.mark.proves(
    "protocol.errors.everywhere", "protocol.errors.no-leak", "protocol.errors.shape"
)
@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        (operation, mode)
        for operation in TRIED
        for mode in GenerationMode
        # Where nothing is asked for, nothing can be wrong.
        if mode is GenerationMode.POSITIVE or not operation.is_open
    ],
    ids=lambda value: value.value if isinstance(value, GenerationMode) else str(value),
)
def test_made_up_requests(answers: Answers, operation: Operation, mode: GenerationMode) -> None:
    client = answers.client(operation)
    existing = dict(answers.of(operation)[0].path)

    @given(case=cases(operation, mode), there=st.booleans())
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def tried(case: Any, *, there: bool) -> None:
        answer = send(client, case, existing if there else None)
        if answer.content != NOT_HTTP:
            check_harmless(answer, operation, case)

    tried()
