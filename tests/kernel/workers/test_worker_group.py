"""Workers of one kind: side by side, in turn, and whole again after each misfortune."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.client import WorkerPool
from sidecar.kernel.workers.group import WorkerGroup
from tests.kernel.waiting import gone, until

COMMAND = (sys.executable, str(Path(__file__).with_name("scripted_worker.py")))


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    yield made
    await made.close()


@pytest.fixture
def group(pool: WorkerPool) -> WorkerGroup:
    return WorkerGroup(pool, "scripted", 2, COMMAND)


async def ask(
    group: WorkerGroup, method: str, seconds: float = 30, **params: Any
) -> dict[str, Any]:
    return await group.result(method, params, limit_seconds=seconds)


async def test_progress_is_told_and_the_result_returned(group: WorkerGroup) -> None:
    told: list[dict[str, Any]] = []

    async def tell(data: dict[str, Any]) -> None:
        told.append(data)

    found = await group.result("echo", {"a": 1}, limit_seconds=30, on_progress=tell)

    assert (told, found) == ([{"step": 1}], {"a": 1})


async def test_as_many_children_work_as_there_may_be_and_one_if_that_is_enough(
    group: WorkerGroup, pool: WorkerPool
) -> None:
    for _ in range(3):
        await ask(group, "pid")
    assert len(pool.children()) == 1

    found = await asyncio.gather(*(ask(group, "pid") for _ in range(10)))

    assert {answer["pid"] for answer in found} == {child.pid for child in pool.children()}
    assert len(pool.children()) == 2


async def test_what_takes_too_long_is_ended_and_the_wait_for_a_turn_does_not_count(
    group: WorkerGroup, pool: WorkerPool
) -> None:
    hanging = [asyncio.create_task(ask(group, "hang", 3)) for _ in range(2)]
    await until(lambda: len(pool.children()) == 2)
    pids = [child.pid for child in pool.children()]
    # Its turn comes when the others' limit is over, which is longer than its own.
    waiting = asyncio.create_task(ask(group, "echo", 2.5, e=5))

    ends = await asyncio.gather(*hanging, return_exceptions=True)

    assert [type(end) for end in ends] == [TimeoutError] * 2
    assert await waiting == {"e": 5}
    await gone(*pids)
    assert (await ask(group, "echo", b=2)) == {"b": 2}


async def test_a_cancellation_ends_the_work_and_gives_the_turn_back(
    group: WorkerGroup, pool: WorkerPool
) -> None:
    for _ in range(3):
        working = asyncio.create_task(ask(group, "family"))
        await until(lambda: bool(pool.children()))
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await until(lambda: not pool.children())
    assert (await ask(group, "echo", c=3)) == {"c": 3}


async def test_a_crash_fails_the_one_request(group: WorkerGroup) -> None:
    with pytest.raises(ProjectError) as caught:
        await ask(group, "crash")
    assert caught.value.code == "WORKER_CRASHED"
    assert (await ask(group, "echo", d=4)) == {"d": 4}
