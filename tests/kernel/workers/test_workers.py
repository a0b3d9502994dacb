"""Worker processes: real children that crash, hang, chatter and have children of their own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.processes import LINE_LIMIT, process_exists
from sidecar.kernel.workers.client import Worker, WorkerPool, WorkerSpec
from tests.kernel.waiting import drain, gone, until

SCRIPT = str(Path(__file__).with_name("scripted_worker.py"))


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    yield made
    await made.close()


@pytest.fixture
def worker(pool: WorkerPool) -> Worker:
    return pool.add(WorkerSpec("scripted", command=(sys.executable, SCRIPT)))


async def _ask(worker: Worker, method: str, **params: Any) -> dict[str, Any]:
    data: dict[str, Any] = {}
    async with asyncio.timeout(30):
        async for message in worker.request(method, params):
            data = message["data"]
    return data


async def _code(worker: Worker, method: str, **params: Any) -> str:
    with pytest.raises(ProjectError) as caught:
        await _ask(worker, method, **params)
    return caught.value.code


async def test_progress_comes_before_the_result(worker: Worker) -> None:
    messages = [message async for message in worker.request("echo", {"text": "听\u2028到\n"})]
    assert [message["type"] for message in messages] == ["progress", "result"]
    assert messages[-1]["data"] == {"text": "听\u2028到\n"}


async def test_one_child_serves_one_request_after_the_other(worker: Worker) -> None:
    found = await asyncio.gather(*(_ask(worker, "pid") for _ in range(10)))
    assert {answer["pid"] for answer in found} == {worker.pid}


async def test_an_error_of_the_worker_is_a_project_error_and_no_crash(worker: Worker) -> None:
    before = (await _ask(worker, "pid"))["pid"]
    assert await _code(worker, "fail") == "STATE_CONFLICT"
    assert (await _ask(worker, "pid"))["pid"] == before


@pytest.mark.parametrize("method", ["crash", "kill"])
async def test_a_crash_fails_the_one_request(worker: Worker, method: str) -> None:
    before = (await _ask(worker, "pid"))["pid"]
    assert await _code(worker, method) == "WORKER_CRASHED"
    after = (await _ask(worker, "pid"))["pid"]
    assert after != before
    await gone(before)


async def test_a_crash_takes_the_children_with_it(worker: Worker) -> None:
    request = worker.request("family", {})
    pids = (await anext(request))["data"]["pids"]
    psutil.Process(pids[0]).kill()
    with pytest.raises(ProjectError, match="WORKER_CRASHED"):
        await drain(request)
    # The child in a session of its own is found while its parent lives, and no longer after.
    await gone(pids[0], pids[1])
    psutil.Process(pids[2]).kill()


async def test_a_worker_that_falls_silent_is_ended(pool: WorkerPool) -> None:
    worker = pool.add(WorkerSpec("silent", (sys.executable, SCRIPT), silence_seconds=0.5))
    request = worker.request("stubborn", {})
    pids = (await anext(request))["data"]["pids"]
    with pytest.raises(ProjectError, match="WORKER_TIMEOUT"):
        await drain(request)
    await gone(*pids)
    assert (await _ask(worker, "pid"))["pid"] not in pids


async def test_a_cancel_that_is_honoured_keeps_the_worker(worker: Worker) -> None:
    request = worker.request("polite", {})
    pid = (await anext(request))["data"]["pids"][0]
    await request.aclose()
    assert (await _ask(worker, "pid"))["pid"] == pid


@pytest.mark.parametrize("method", ["hang", "stubborn"])
async def test_a_cancel_that_is_ignored_ends_the_whole_tree(worker: Worker, method: str) -> None:
    request = worker.request(method, {})
    pids = (await anext(request))["data"]["pids"]
    await request.aclose()
    # When the cancel returns nobody computes any more.
    assert not any(process_exists(pid) for pid in pids)
    assert (await _ask(worker, "echo", text="next")) == {"text": "next"}


async def test_a_cancelled_task_cancels_its_request(worker: Worker) -> None:
    begun: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        async for message in worker.request("stubborn", {}):
            begun.set_result(message["data"]["pids"])

    task = asyncio.create_task(run())
    async with asyncio.timeout(20):
        pids = await begun
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(*pids)
    assert (await _ask(worker, "echo", text="next")) == {"text": "next"}


async def test_an_idle_worker_is_ended_and_comes_back(pool: WorkerPool) -> None:
    worker = pool.add(WorkerSpec("idle", (sys.executable, SCRIPT), idle_seconds=0.2))
    first = (await _ask(worker, "pid"))["pid"]
    await gone(first)
    assert pool.children() == []
    second = (await _ask(worker, "pid"))["pid"]
    assert second != first


async def test_stray_output_is_no_message(worker: Worker) -> None:
    assert await _ask(worker, "stray") == {"ok": True}
    assert await _ask(worker, "echo", text="next") == {"text": "next"}


async def test_output_of_another_shape_is_no_message(worker: Worker) -> None:
    assert await _ask(worker, "shapes") == {"ok": True}


async def test_a_line_with_a_whole_transcript_is_read(worker: Worker) -> None:
    assert len((await _ask(worker, "long", size=4_000_000))["text"]) == 4_000_000


async def test_a_line_over_the_limit_is_a_crash(worker: Worker) -> None:
    assert await _code(worker, "long", size=LINE_LIMIT + 1000) == "WORKER_CRASHED"
    assert await _ask(worker, "echo", text="next") == {"text": "next"}


@pytest.mark.parametrize("size", [100_000, LINE_LIMIT + 1000])
async def test_noise_on_stderr_holds_nothing_up(worker: Worker, size: int) -> None:
    for _ in range(3):
        assert await _ask(worker, "noise", size=size) == {"ok": True}


async def test_a_program_that_is_not_there_is_a_crash(pool: WorkerPool) -> None:
    worker = pool.add(WorkerSpec("missing", ("/no/such/program",)))
    assert await _code(worker, "echo") == "WORKER_CRASHED"


async def test_closing_ends_every_tree_and_refuses_more(pool: WorkerPool) -> None:
    workers = [
        pool.add(WorkerSpec(f"worker_{number}", (sys.executable, SCRIPT))) for number in range(3)
    ]
    requests = [worker.request("stubborn", {}) for worker in workers]
    pids = [pid for request in requests for pid in (await anext(request))["data"]["pids"]]
    assert {child.kind for child in pool.children()} == {
        "worker:worker_0",
        "worker:worker_1",
        "worker:worker_2",
    }
    await pool.close()
    assert not any(process_exists(pid) for pid in pids)
    for request in requests:
        with pytest.raises(ProjectError, match="WORKER_CRASHED"):
            await anext(request)
    assert await _code(workers[0], "echo") == "SHUTTING_DOWN"


async def test_a_worker_that_does_not_read_is_cancelled_all_the_same(pool: WorkerPool) -> None:
    silent = "import sys, threading; sys.stdin.readline(); threading.Event().wait()"
    worker = pool.add(WorkerSpec("deaf", (sys.executable, "-c", silent)))

    async def ask() -> None:
        # More than a pipe holds: the request itself can't be sent to its end.
        async for _ in worker.request("echo", {"text": "x" * 2_000_000}):
            continue

    task = asyncio.create_task(ask())
    async with asyncio.timeout(20):
        await until(lambda: worker.pid is not None)
        pid = worker.pid or 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await gone(pid)
