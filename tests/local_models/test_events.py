"""The event stream of a model, over several transfers and restarts."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from sidecar.kernel.http import sse
from sidecar.local_models import downloading
from tests.local_models.conftest import MODEL, WAIT, Desk


async def frames(desk: Desk, **cursor: Any) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    """Yield (event, envelope) until the stream ends; a heartbeat is an empty event."""
    headers = {"Last-Event-ID": str(cursor["last"])} if "last" in cursor else {}
    params = {"after_sequence": str(cursor["after"])} if "after" in cursor else {}
    path = f"/api/local-models/{MODEL}/events"
    async with (
        asyncio.timeout(WAIT),
        desk.app.http.stream("GET", path, headers=headers, params=params) as answer,
    ):
        assert answer.status_code == 200
        name = ""
        async for line in answer.aiter_lines():
            if line.startswith(": "):
                yield "", {}
            elif line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                envelope = json.loads(line.removeprefix("data: "))
                assert envelope["resource_id"] == MODEL
                yield name, envelope


async def followed(desk: Desk, **cursor: Any) -> list[tuple[str, int]]:
    return [(name, envelope["sequence"]) async for name, envelope in frames(desk, **cursor)]


@pytest.mark.proves(
    "local-models.events.stream",
    "local-models.events.several-downloads",
    "local-models.events.resume",
)
async def test_several_transfers(desk: Desk) -> None:
    for mirror in (False, True):
        desk.served("model.bin", mirror=mirror).status = 404
    await desk.downloaded()
    failed = await followed(desk)
    for mirror in (False, True):
        desk.served("model.bin", mirror=mirror).status = None
    await desk.downloaded()
    latest = await followed(desk)
    assert (failed[0], failed[-1][0]) == (("Queued", 1), "Failed")
    assert latest[0] == ("Queued", failed[-1][1] + 1) and latest[-1][0] == "Completed"
    assert [number for _, number in failed + latest] == list(range(1, latest[-1][1] + 1))
    assert await followed(desk, after=0) == failed
    assert await followed(desk, last=1) == failed[1:]
    assert await followed(desk, last=failed[-1][1]) == latest
    assert await followed(desk, after=latest[0][1]) == latest[1:]
    last = latest[-1][1]
    path = f"/api/local-models/{MODEL}/events"
    answer = await desk.app.http.get(path, params={"after_sequence": str(last)})
    assert answer.status_code == 204
    answer = await desk.app.http.get(path, params={"after_sequence": str(last + 1)})
    assert answer.json()["error"]["code"] == "TRACE_CURSOR_INVALID"


@pytest.mark.proves("local-models.events.none-yet")
async def test_a_stream_before_the_first_transfer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    names: list[str] = []
    started = False
    async with aclosing(frames(desk)) as stream:
        async for name, _ in stream:
            names.append(name)
            if names.count("") == 2 and not started:
                started = True
                await desk.post("download")
    assert names[:2] == ["", ""]
    told = [name for name in names if name]
    assert (told[0], told[-1]) == ("Queued", "Completed")


@pytest.mark.proves("local-models.events.progress")
async def test_progress_tells_bytes_and_speed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "PROGRESS_SECONDS", 0.0)
    await desk.downloaded()
    told = [event.data for event in await desk.events() if event.event == "Progress"]
    assert len(told) > 10
    assert [data["bytes"] for data in told] == sorted(data["bytes"] for data in told)
    assert told[0]["bytes"] == 0 and told[0]["bytes_per_second"] is None
    assert max(data["bytes_per_second"] for data in told[1:]) > 0
    assert {data["total"] for data in told} == {told[0]["total"]}
    assert all(data["percent"] <= 100 for data in told)


@pytest.mark.proves("local-models.events.progress")
async def test_percent_is_null_while_the_total_is_unknown(desk: Desk) -> None:
    await desk.downloaded("test-unhashed")
    told = [event.data for event in await desk.events("test-unhashed") if event.event == "Progress"]
    assert (told[0]["percent"], told[0]["total"]) == (None, None)
    assert (told[-1]["percent"], told[-1]["bytes"]) == (100.0, told[-1]["total"])
