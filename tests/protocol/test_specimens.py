"""Every operation and every kind of job is known here, and every operation answers as the contract and OpenAPI say."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.protocol.conftest import Answers
from tests.protocol.live import LiveApp
from tests.protocol.operations import (
    JSON_TYPE,
    KINDS,
    OPERATIONS,
    WITH_JSON,
    Operation,
    schemas_of_properties,
    variants,
)
from tests.protocol.specimens import JOBS, SHOWN_JOBS, SPECIMENS, Specimen
from tests.protocol.values import at, place_of, replaced, walk

pytestmark = pytest.mark.usefixtures("no_real_work")

every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)

NONE = Specimen(0)

UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
EXOTIC = '研究 📝\u2028 \u0085 é e\u0301 \U0001f469\u200d\U0001f4bb "\\ </script> \ufeff end'
JOB_STATUSES = {"queued", "running", "completed", "failed", "cancelled"}


def test_every_operation_has_a_specimen() -> None:
    names = {str(operation) for operation in OPERATIONS}
    assert names - set(SPECIMENS) == set(), "add a request of each to tests/protocol/specimens/"
    assert set(SPECIMENS) - names == set(), "these operations are gone"


def test_every_kind_of_job_has_a_specimen() -> None:
    assert set(JOBS) == set(KINDS), "tell in tests/protocol/specimens/ where these jobs live"
    for specimen in JOBS.values():
        assert f"POST {specimen.collection}" in SPECIMENS


@pytest.mark.proves(
    "protocol.status.200", "protocol.status.201", "protocol.status.202", "protocol.status.204"
)
@every_operation
def test_status(answers: Answers, operation: Operation) -> None:
    _, answer = answers.of(operation)
    specimen = SPECIMENS[str(operation)]
    assert answer.status_code == specimen.status, answer.text
    assert str(specimen.status) in operation.spec["responses"], "OpenAPI names another status"
    if specimen.status == 204:
        assert answer.content == b""


@pytest.mark.proves("protocol.status.202")
def test_jobs_and_cancels_answer_202() -> None:
    makes_jobs = {f"POST {specimen.collection}" for specimen in JOBS.values()}
    accepting = [
        name for name in SPECIMENS if name in makes_jobs or name.endswith(("/cancel", "/restart"))
    ]
    assert all(SPECIMENS[name].status == 202 for name in accepting)


@pytest.mark.proves("protocol.json.utf-8")
@every_operation
def test_json_is_utf_8(answers: Answers, operation: Operation) -> None:
    _, answer = answers.of(operation)
    media_type = answer.headers.get("content-type", "")
    if media_type.startswith(JSON_TYPE):
        assert media_type in (JSON_TYPE, f"{JSON_TYPE}; charset=utf-8")
        answer.content.decode("utf-8")


@pytest.mark.proves("protocol.json.utf-8")
@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if o.body_types and SPECIMENS.get(str(o), NONE).kept],
    ids=str,
)
def test_text_comes_back_unchanged(answers: Answers, operation: Operation) -> None:
    for dotted in SPECIMENS[str(operation)].kept:
        place = place_of(dotted)
        request = answers.request(operation)
        sent = replaced(request.json, place, EXOTIC)
        answer = replace(request, json=sent).send(answers.client(operation), operation)
        assert answer.status_code == SPECIMENS[str(operation)].status, answer.text
        assert at(answer.json(), place) == EXOTIC


@pytest.mark.proves("protocol.json.optional-additions")
@pytest.mark.parametrize("operation", WITH_JSON, ids=str)
def test_fields_of_later_are_optional(answers: Answers, operation: Operation) -> None:
    # A specimen holds the fields that the contract first required, and test_status shows that it succeeds.
    request = answers.request(operation)
    assert operation.json_schema is not None
    for schema in variants(operation.json_schema):
        assert set(schema.get("required", ())) <= set(request.json)


@pytest.mark.proves("protocol.json.unknown-fields")
@pytest.mark.parametrize("operation", WITH_JSON, ids=str)
def test_unknown_fields_are_ignored_or_refused(answers: Answers, operation: Operation) -> None:
    request = answers.request(operation)
    sent = {**request.json, "zz_unknown": {"path": "/etc"}}
    answer = replace(request, json=sent).send(answers.client(operation), operation)
    if answer.status_code == 422:
        error = answer.json()["error"]
        assert error["code"] == "VALIDATION_ERROR"
        assert ["zz_unknown"] in [entry["loc"][-1:] for entry in error["details"]["errors"]]
    else:
        assert answer.status_code == SPECIMENS[str(operation)].status, answer.text
        assert "zz_unknown" not in answer.text


def check_times(value: Any) -> int:
    """Check each field that names a time; return how many there were."""
    count = 0
    for place, found in walk(value):
        name = place[-1] if place else ""
        if isinstance(name, str) and (name.endswith("_at") or name == "timestamp") and found:
            assert isinstance(found, str) and UTC.fullmatch(found), (place, found)
            moment = datetime.fromisoformat(found)
            assert moment.utcoffset() == timedelta(0)
            count += 1
    return count


@pytest.mark.proves("protocol.time.utc-iso8601")
@every_operation
def test_times_are_utc(answers: Answers, operation: Operation) -> None:
    _, answer = answers.of(operation)
    if answer.headers.get("content-type", "").startswith(JSON_TYPE):
        found = check_times(answer.json())
        named = set(operation.answer_schema(str(answer.status_code)).get("required", ()))
        assert found or not {"created_at", "started_at", "expires_at"} & named


@pytest.mark.proves("protocol.time.utc-iso8601", "protocol.time.durations")
def test_models_of_times() -> None:
    for model, name, schema in schemas_of_properties():
        types = {variant.get("type") for variant in variants(schema)} - {"null"}
        if name.endswith("_at"):
            assert types == {"string"}, f"{model}.{name}"
        if name in ("start_time", "end_time"):
            assert types == {"number"}, f"{model}.{name}"
        if re.search(r"duration|elapsed|latency|took", name):
            assert name.endswith("_ms"), f"{model}.{name}"


@pytest.mark.proves("protocol.jobs.statuses", "protocol.jobs.never-processing")
def test_statuses_of_jobs() -> None:
    found = 0
    for model, name, schema in schemas_of_properties():
        values = {value for variant in variants(schema) for value in variant.get("enum", ())}
        assert "processing" not in values, f"{model}.{name}"
        if name == "status" and "queued" in values:
            assert values == JOB_STATUSES, f"{model}.{name}"
            found += 1
    assert found >= len(SHOWN_JOBS)


@pytest.mark.proves("protocol.jobs.never-processing")
@every_operation
def test_nothing_is_processing(answers: Answers, operation: Operation) -> None:
    assert '"processing"' not in answers.of(operation)[1].text


@pytest.mark.proves("protocol.secrets.not-in-output")
@every_operation
def test_tokens_are_in_no_answer(app: LiveApp, answers: Answers, operation: Operation) -> None:
    _, answer = answers.of(operation)
    whole = f"{answer.text} {answer.headers}"
    assert not any(secret in whole for secret in app.secrets)
