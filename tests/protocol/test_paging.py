"""Every ordinary list, from the OpenAPI document: its pages, its order and its filters."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.protocol.conftest import Answers
from tests.protocol.jobs import Jobs
from tests.protocol.live import LiveApp, error_of
from tests.protocol.operations import BY_NAME, LISTS, Operation
from tests.protocol.specimens import SHOWN_JOBS, SPECIMENS

pytestmark = pytest.mark.usefixtures("no_real_work")

every_list = pytest.mark.parametrize("operation", LISTS, ids=str)

ENOUGH = 5
NEWEST_FIRST = {specimen.collection for specimen in SHOWN_JOBS.values()} | {
    "/api/media/attachments"
}
FILTERS = ("status", "kind", "format")


def fill(app: LiveApp, answers: Answers, operation: Operation) -> None:
    """Make sure that a list has some items, if its path makes them."""
    maker = BY_NAME.get(f"POST {operation.path}")
    for kind, specimen in SHOWN_JOBS.items():
        if specimen.collection == operation.path:
            with app.holding(kind):
                for _ in range(ENOUGH):
                    Jobs(app, kind).new()
            return
    if maker is not None:
        for _ in range(ENOUGH):
            answers.request(maker).send(app.session, maker).raise_for_status()


def ask(answers: Answers, operation: Operation, **query: Any) -> httpx.Response:
    """Ask for a page."""
    request, _ = answers.of(operation)
    return replace(request, query={**request.query, **query}).send(
        answers.client(operation), operation
    )


def page(answers: Answers, operation: Operation, **query: Any) -> dict[str, Any]:
    """Ask for a page that is there."""
    answer = ask(answers, operation, **query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert isinstance(body["items"], list)
    assert set(body["page"]) == {"total", "limit", "offset"}
    assert all(type(value) is int for value in body["page"].values())
    return body


@pytest.mark.proves("protocol.paging.shape", "protocol.paging.defaults", "protocol.paging.total")
@every_list
def test_shape_and_defaults(app: LiveApp, answers: Answers, operation: Operation) -> None:
    body = page(answers, operation)
    assert set(body) == {"items", "page"}
    assert (body["page"]["limit"], body["page"]["offset"]) == (50, 0)
    assert len(body["items"]) == min(50, body["page"]["total"])


@pytest.mark.proves("protocol.paging.stable-order", "protocol.paging.total")
@every_list
def test_walk(app: LiveApp, answers: Answers, operation: Operation) -> None:
    fill(app, answers, operation)
    whole = page(answers, operation, limit=200)
    total = whole["page"]["total"]
    assert total == len(whole["items"]) or total > 200
    walked: list[Any] = []
    while len(walked) < min(total, 60):
        part = page(answers, operation, limit=3, offset=len(walked))
        assert part["page"] == {"total": total, "limit": 3, "offset": len(walked)}
        assert 0 < len(part["items"]) <= 3
        walked += part["items"]
    assert walked == whole["items"][: len(walked)]
    names = [repr(item) for item in walked]
    assert len(set(names)) == len(names)
    if operation.path in NEWEST_FIRST:
        assert total >= ENOUGH
        times = [item["created_at"] for item in whole["items"]]
        assert times == sorted(times, reverse=True)


@pytest.mark.proves("protocol.paging.stable-order")
@pytest.mark.parametrize("kind", sorted(SHOWN_JOBS))
def test_jobs_of_one_moment_keep_their_order(app: LiveApp, answers: Answers, kind: str) -> None:
    operation = BY_NAME[f"GET {SHOWN_JOBS[kind].collection}"]
    fill(app, answers, operation)

    def one_moment(tx: Any) -> None:
        tx.execute("UPDATE jobs SET created_at = '2026-01-01T00:00:00.000Z'")

    app.call(app.services.database.write(one_moment))
    whole = [item["job_id"] for item in page(answers, operation, limit=200)["items"]]
    walked = [
        page(answers, operation, limit=1, offset=offset)["items"][0]["job_id"]
        for offset in range(min(len(whole), 20))
    ]
    assert walked == whole[: len(walked)] and len(set(whole)) == len(whole)


@pytest.mark.proves("protocol.paging.past-the-end")
@every_list
def test_past_the_end(answers: Answers, operation: Operation) -> None:
    total = page(answers, operation)["page"]["total"]
    for offset in (total, total + 1, 2**53):
        body = page(answers, operation, offset=offset)
        assert body["items"] == []
        assert body["page"] == {"total": total, "limit": 50, "offset": offset}


@pytest.mark.proves("protocol.paging.range", "protocol.errors.validation", "protocol.status.422")
@every_list
def test_range(answers: Answers, operation: Operation) -> None:
    for limit in (1, 200):
        assert page(answers, operation, limit=limit)["page"]["limit"] == limit
    wrong = {
        "limit": ("0", "201", "-1", "abc", "1.5", "1e2", "9" * 40, "null", "١"),
        "offset": ("-1", "abc", "0.5", "9" * 40, "null"),
    }
    for name, values in wrong.items():
        for value in values:
            answer = ask(answers, operation, **{name: value})
            assert answer.status_code == 422, (name, value, answer.text)
            error = error_of(answer)
            assert error["code"] == "VALIDATION_ERROR"
            assert [entry["loc"] for entry in error["details"]["errors"]] == [["query", name]]


@pytest.mark.proves("protocol.paging.empty-parameters")
@every_list
def test_empty_parameters(answers: Answers, operation: Operation) -> None:
    required = {p["name"] for p in operation.parameters("query") if p.get("required")}
    empty = dict.fromkeys(set(operation.queries) - required, "")
    assert {"limit", "offset"} <= set(empty)
    assert page(answers, operation, **empty) == page(answers, operation)


@pytest.mark.proves("protocol.paging.filter-invalid")
@pytest.mark.parametrize("operation", [o for o in LISTS if set(FILTERS) & set(o.queries)], ids=str)
def test_unknown_value_of_a_filter(answers: Answers, operation: Operation) -> None:
    for name in set(FILTERS) & set(operation.queries):
        for value in ("zz", "processing", "COMPLETED", "completed,failed", "null", "0"):
            answer = ask(answers, operation, **{name: value})
            assert answer.status_code == 422, (name, value)
            error = error_of(answer)
            assert error["code"] == "VALIDATION_ERROR"
            assert error["details"]["errors"][0]["loc"] == ["query", name]


@pytest.mark.proves("protocol.paging.total")
@pytest.mark.parametrize("kind", sorted(SHOWN_JOBS))
def test_total_counts_what_the_filter_lets_through(
    app: LiveApp, answers: Answers, kind: str
) -> None:
    operation = BY_NAME[f"GET {SHOWN_JOBS[kind].collection}"]
    fill(app, answers, operation)
    Jobs(app, kind).completed()
    total = page(answers, operation)["page"]["total"]
    counts = {}
    for status in ("queued", "running", "completed", "failed", "cancelled"):
        body = page(answers, operation, status=status, limit=2)
        counts[status] = body["page"]["total"]
        assert len(body["items"]) == min(2, counts[status])
        assert all(item["status"] == status for item in body["items"])
    assert sum(counts.values()) == total
    assert counts["completed"] >= 1 and counts["cancelled"] >= 2


@pytest.mark.proves("protocol.paging.shape")
def test_every_list_of_jobs_and_attachments_is_looked_at() -> None:
    assert {operation.path for operation in LISTS} >= NEWEST_FIRST
    assert all(f"GET {path}" in SPECIMENS for path in NEWEST_FIRST)
