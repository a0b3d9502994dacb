"""The ledger of model calls: its sums, its filters, and its export."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.usage.service import LOCAL_PROVIDER, Attempt, UsageLedger
from tests.app_client import RunningApp, running_app

CHAT = Attempt(
    source="chat",
    capability="chat",
    provider_id="provider_a",
    provider_name="甲",
    model="small",
    started_at="2026-09-01T10:00:00.000Z",
    duration_ms=120,
    status="completed",
    input_tokens=10,
    output_tokens=4,
    total_tokens=14,
)
TRANSCRIPTION = Attempt(
    source="transcription",
    capability="transcription",
    provider_id="provider_b",
    provider_name="乙",
    model="ears",
    started_at="2026-09-02T20:30:00.000Z",
    duration_ms=900,
    status="failed",
    error_code="PROVIDER_TIMEOUT",
)
LOCAL_TRANSCRIPTION = replace(
    TRANSCRIPTION,
    provider_id=LOCAL_PROVIDER,
    provider_name=None,
    model="whisper-base",
    started_at="2026-09-02T20:31:00.000Z",
    status="completed",
    error_code=None,
    audio_seconds=12.5,
)
MATCH = replace(
    TRANSCRIPTION,
    source="speaker_matching",
    capability="speaker_matching",
    started_at="2026-09-03T00:00:00.000Z",
    status="cancelled",
    error_code=None,
)
EMBEDDING = replace(
    CHAT, source="embedding", capability="embedding", model="vectors", output_tokens=None
)
PROBE = replace(
    CHAT, source="probe", provider_id=None, input_tokens=None, output_tokens=None, total_tokens=None
)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """A running application without a vault."""
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as running:
        yield running


async def fill(app: RunningApp, *attempts: Attempt) -> None:
    """Write attempts to the ledger."""
    for attempt in attempts:
        await app.services.ledger.record(attempt)


async def usage(app: RunningApp, **query: Any) -> dict[str, Any]:
    """Return the sums."""
    answer = await app.http.get("/api/usage", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def total(found: dict[str, Any]) -> dict[str, Any]:
    """Return the sums over everything."""
    return {key: value for key, value in found.items() if not key.startswith("by_")}


@pytest.mark.proves("providers.usage.get", "providers.usage.audio-fields")
async def test_an_empty_ledger(app: RunningApp) -> None:
    assert await usage(app) == {
        "request_count": 0,
        "failed_count": 0,
        "cancelled_count": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
        "token_covered_requests": 0,
        "audio_request_count": 0,
        "audio_seconds": None,
        "audio_covered_requests": 0,
        "by_day": [],
        "by_model": [],
    }


@pytest.mark.proves(
    "providers.usage.get",
    "providers.usage.audio-fields",
    "providers.usage.audio-seconds",
    "providers.usage.failed-attempts",
    "providers.usage.unreported-tokens",
)
async def test_sums(app: RunningApp) -> None:
    cut_off = replace(
        CHAT, status="failed", error_code="PROVIDER_STREAM_TRUNCATED", output_tokens=1
    )
    await fill(app, CHAT, cut_off, EMBEDDING, PROBE, TRANSCRIPTION, LOCAL_TRANSCRIPTION, MATCH)
    assert total(await usage(app)) == {
        "request_count": 7,
        "failed_count": 2,
        "cancelled_count": 1,
        "input_tokens": 30,
        "output_tokens": 5,
        "total_tokens": 42,
        "token_covered_requests": 3,
        "audio_request_count": 3,
        "audio_seconds": 12.5,
        "audio_covered_requests": 1,
    }
    silent = await usage(app, provider_id="provider_b")
    assert (silent["audio_request_count"], silent["audio_covered_requests"]) == (2, 0)
    assert silent["audio_seconds"] is None


async def test_sums_by_day_and_model(app: RunningApp) -> None:
    renamed = replace(CHAT, provider_name="新", started_at="2026-09-03T10:00:00.000Z")
    await fill(app, CHAT, TRANSCRIPTION, LOCAL_TRANSCRIPTION, MATCH, renamed)
    found = await usage(app)
    assert [(day["day"], day["request_count"], day["total_tokens"]) for day in found["by_day"]] == [
        ("2026-09-01", 1, 14),
        ("2026-09-02", 2, 0),
        ("2026-09-03", 2, 14),
    ]
    assert [
        (part["provider_id"], part["provider_name"], part["model"], part["request_count"])
        for part in found["by_model"]
    ] == [
        ("provider_a", "新", "small", 2),
        ("provider_b", "乙", "ears", 2),
        ("local", None, "whisper-base", 1),
    ]
    # 20:30 UTC is past midnight in China.
    shifted = await usage(app, utc_offset_minutes=480)
    assert [(day["day"], day["request_count"]) for day in shifted["by_day"]] == [
        ("2026-09-01", 1),
        ("2026-09-03", 4),
    ]


@pytest.mark.proves("providers.usage.filters", "providers.usage.filter-names")
async def test_filters(app: RunningApp) -> None:
    await fill(app, CHAT, EMBEDDING, PROBE, TRANSCRIPTION, LOCAL_TRANSCRIPTION, MATCH)
    for query, expected in (
        ({"from": "2026-09-02T00:00:00Z"}, 3),
        ({"from": "2026-09-02"}, 3),
        ({"to": "2026-09-02T20:31:00Z"}, 4),
        ({"from": "2026-09-02T20:31:00Z", "to": "2026-09-03T00:00:00Z"}, 1),
        ({"from": "2026-09-03T04:30:00+08:00", "to": "2026-09-03T04:31:00+08:00"}, 1),
        ({"from": "2026-09-02", "to": "2026-09-02"}, 0),
        ({"provider_id": "provider_a"}, 2),
        ({"provider_id": "local"}, 1),
        ({"model": "ears"}, 2),
        ({"source": "speaker_matching"}, 1),
        ({"source": "nobody"}, 0),
        ({"provider_id": "provider_b", "source": "transcription", "to": "2026-09-03"}, 1),
        ({"provider_id": "provider_a", "model": "ears"}, 0),
        ({"from": "", "to": "", "provider_id": "", "model": "", "source": ""}, 6),
        ({"utc_offset_minutes": ""}, 6),
    ):
        found = await usage(app, **query)
        assert found["request_count"] == expected, query
        assert sum(day["request_count"] for day in found["by_day"]) == expected
        assert sum(model["request_count"] for model in found["by_model"]) == expected
    found = await usage(app, provider_id="local", source="transcription")
    assert total(found)["audio_seconds"] == 12.5
    assert (found["audio_request_count"], found["audio_covered_requests"]) == (1, 1)
    assert (await usage(app, source="chat"))["audio_request_count"] == 0
    # A plus sign that nobody encoded.
    answer = await app.http.get("/api/usage?from=2026-09-03T04:30:00+08:00&source=transcription")
    assert answer.json()["request_count"] == 2


@pytest.mark.proves("providers.usage.filter-names")
@pytest.mark.parametrize("path", ["/api/usage", "/api/usage/export"])
async def test_filters_that_make_no_sense(app: RunningApp, path: str) -> None:
    for query in (
        {"from": "2026-09-02T00:00:00Z", "to": "2026-09-01T00:00:00Z"},
        {"from": "2026-09-02T00:00:00+08:00", "to": "2026-09-01T15:59:59Z"},
        {"from": "yesterday"},
        {"to": "1767225600"},
        {"to": "9999-12-31T23:59:59-14:00"},
    ):
        answer = await app.http.get(path, params=query)
        assert answer.status_code == 422, query
        assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    for offset in ("841", "-841", "east"):
        answer = await app.http.get("/api/usage", params={"utc_offset_minutes": offset})
        assert answer.status_code == 422


COLUMNS = [
    "started_at",
    "source",
    "capability",
    "provider_id",
    "provider_name",
    "model",
    "status",
    "error_code",
    "duration_ms",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "audio_seconds",
]


@pytest.mark.proves("providers.usage.export", "providers.usage.export-private")
async def test_export(app: RunningApp) -> None:
    await fill(app, CHAT, TRANSCRIPTION, LOCAL_TRANSCRIPTION)
    answer = await app.http.get("/api/usage/export")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="usage-')
    assert answer.headers["content-disposition"].endswith(".csv")
    assert answer.content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
    assert rows[0] == COLUMNS
    assert rows[1] == [
        "2026-09-01T10:00:00.000Z",
        *("chat", "chat", "provider_a", "甲", "small", "completed", "", "120"),
        *("10", "4", "14", ""),
    ]
    assert [row[3] for row in rows[1:]] == ["provider_a", "provider_b", "local"]
    answer = await app.http.get("/api/usage/export", params={"format": "json", "model": "ears"})
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json() == {
        "items": [
            {
                "started_at": "2026-09-02T20:30:00.000Z",
                "source": "transcription",
                "capability": "transcription",
                "provider_id": "provider_b",
                "provider_name": "乙",
                "model": "ears",
                "status": "failed",
                "error_code": "PROVIDER_TIMEOUT",
                "duration_ms": 900,
                "input_tokens": None,
                "output_tokens": None,
                "total_tokens": None,
                "audio_seconds": None,
            }
        ]
    }
    for query, expected in (
        ({"from": "2026-09-02"}, 2),
        ({"to": "2026-09-02"}, 1),
        ({"provider_id": "local"}, 1),
        ({"source": "transcription"}, 2),
        ({"source": "nobody"}, 0),
    ):
        answer = await app.http.get("/api/usage/export", params={**query, "format": "json"})
        assert len(answer.json()["items"]) == expected, query
        answer = await app.http.get("/api/usage/export", params=query)
        assert len(answer.text.splitlines()) == expected + 1
    answer = await app.http.get("/api/usage/export", params={"format": "xlsx"})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", " =1", "\r=1", '=HYPERLINK("http://x","y")']
)
async def test_a_name_is_no_formula(app: RunningApp, name: str) -> None:
    await fill(app, replace(CHAT, provider_name=name, model=name))
    answer = await app.http.get("/api/usage/export")
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
    assert rows[1][4:6] == ["'" + name, "'" + name]
    exact = (await app.http.get("/api/usage/export", params={"format": "json"})).json()
    assert exact["items"][0]["model"] == name


async def test_a_long_export_comes_in_parts(app: RunningApp) -> None:
    def write(tx: Any) -> None:
        for number in range(2500):
            UsageLedger.record_in(tx, replace(CHAT, duration_ms=number))

    await app.services.database.write(write)
    for file_format in ("csv", "json"):
        parts: list[str] = []
        async with app.http.stream(
            "GET", "/api/usage/export", params={"format": file_format}
        ) as answer:
            assert "content-length" not in answer.headers
            async for part in answer.aiter_text():
                # What is written while the file is read isn't in it.
                if not parts:
                    await fill(app, CHAT)
                parts.append(part)
        text = "".join(parts)
        if file_format == "json":
            durations = [row["duration_ms"] for row in json.loads(text)["items"]]
            # The one that the first file left out is in the second.
            assert durations == [*range(2500), 120]
        else:
            rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
            assert [int(row["duration_ms"]) for row in rows] == list(range(2500))


async def test_a_ticket_opens_the_export(app: RunningApp) -> None:
    answer = await app.http.post("/api/tickets", json={"path": "/api/usage/export"})
    assert answer.status_code == 201, answer.text
    file = await app.anonymous.get(answer.json()["url"], params=None)
    assert file.status_code == 200
    assert file.text.startswith("\ufeffstarted_at,")


@pytest.mark.proves("providers.usage.persistence")
async def test_a_restart_keeps_the_ledger(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        await fill(app, CHAT, TRANSCRIPTION)
        before = await usage(app)
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        assert await usage(app) == before
        assert before["request_count"] == 2


async def measured(app: RunningApp, how: str) -> None:
    ledger = app.services.ledger
    async with ledger.attempt(
        source="chat", capability="chat", provider_id="p", provider_name="P", model="m"
    ) as reported:
        reported.input_tokens = 3
        if how == "refused":
            raise ProjectError("PROVIDER_AUTH_FAILED")
        if how == "broken":
            raise RuntimeError("boom")
        if how == "cancelled":
            await asyncio.Event().wait()


@pytest.mark.proves("providers.usage.failed-attempts")
@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ("answered", "completed", None),
        ("refused", "failed", "PROVIDER_AUTH_FAILED"),
        ("broken", "failed", "INTERNAL_ERROR"),
        ("cancelled", "cancelled", None),
    ],
)
async def test_every_end_is_written(
    app: RunningApp, how: str, status: str, code: str | None
) -> None:
    attempt = asyncio.create_task(measured(app, how))
    if how == "cancelled":
        await asyncio.sleep(0)
        attempt.cancel()
    await asyncio.wait([attempt], timeout=10)
    assert attempt.done()
    if not attempt.cancelled():
        assert (attempt.exception() is None) is (how == "answered")
    rows = (await app.http.get("/api/usage/export", params={"format": "json"})).json()["items"]
    assert [(row["status"], row["error_code"], row["input_tokens"]) for row in rows] == [
        (status, code, 3)
    ]
    assert rows[0]["duration_ms"] >= 0


async def test_a_ledger_that_cannot_be_written_fails_no_call(app: RunningApp) -> None:
    await app.services.database.write(lambda tx: tx.execute("DROP TABLE usage_attempts"))
    await measured(app, "answered")
