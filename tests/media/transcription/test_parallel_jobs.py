"""Recordings side by side where the profile lets them, and clients that come and go meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from sidecar.media.transcription.profiles import SETTINGS_FILE
from sidecar.media.transcription.slots import Slots
from tests.app_client import running_app
from tests.media.client import TERMINAL, TRANSCRIPTIONS, Event, MediaClient
from tests.media.samples import CALL, JFK, encoded, samples_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

RECONNECTS = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MediaClient]:
    """A client of an application with a profile that lets two recordings run at once."""
    folder = tmp_path_factory.mktemp("parallel")
    (folder / "data").mkdir()
    profiles = {"pair": {"parallel_jobs": 2, "beam_size": 1}, "alone": {"beam_size": 1}}
    settings = json.dumps({"profiles": profiles})
    (folder / "data" / SETTINGS_FILE).write_text(settings, "utf-8")
    async with running_app(folder) as app:
        yield MediaClient(app)


async def test_two_recordings_run_at_once_and_one_that_wants_to_be_alone_waits(
    media: MediaClient,
) -> None:
    attachment = await media.upload("call.flac", CALL)
    started = [
        await media.start(attachment["attachment_id"], language="en", profile_id=profile)
        for profile in ("pair", "pair", "alone")
    ]
    first, second, third = (job["job_id"] for job in started)
    await asyncio.gather(*(media.until(job, "TranscriptionStarted") for job in (first, second)))
    statuses = [(await media.job(job))["status"] for job in (first, second, third)]
    assert statuses == ["running", "running", "queued"]
    kinds = [child.kind for child in media.app.services.workers.children()]
    assert {"worker:speech", "worker:speech-2"} <= set(kinds)
    await media.until(third, "ModelLoading")
    for job in (first, second):
        assert (await media.job(job))["status"] == "completed"
    assert (await media.finished(third))["status"] == "completed"
    assert (await media.job(first))["text"] == (await media.job(second))["text"]


async def test_a_client_that_comes_back_ten_times_sees_every_event_once(
    media: MediaClient,
) -> None:
    import numpy as np

    long = np.concatenate([samples_of(JFK), samples_of(CALL)])
    attachment = await media.upload("long.flac", encoded(long, "flac"))
    job = await media.start(attachment["attachment_id"], language="en", profile_id="alone")
    path = f"{TRANSCRIPTIONS}/{job['job_id']}/events"
    seen: list[Event] = []
    connections = 0
    while not seen or seen[-1].name not in TERMINAL:
        after = {"Last-Event-ID": str(seen[-1].sequence)} if seen else {}
        async with media.http.stream("GET", path, headers=after) as dropped:
            # Gone before anything is read.
            assert dropped.status_code == 200
        async for event in media.events(job["job_id"], seen[-1].sequence if seen else None):
            seen.append(event)
            break
        connections += 2
    assert connections >= RECONNECTS
    whole = [event async for event in media.events(job["job_id"])]
    assert seen == whole
    assert [event.name for event in seen if event.name in TERMINAL] == ["Completed"]


async def test_slots_are_given_in_the_order_of_asking() -> None:
    slots = Slots()
    order: list[str] = []

    async def use(name: str, limit: int, over: asyncio.Event) -> None:
        async with slots.one_of(limit):
            order.append(name)
            await over.wait()

    ends = {name: asyncio.Event() for name in "abcd"}
    tasks = {}
    async with AsyncExitStack() as stack:
        for name, limit in (("a", 2), ("b", 2), ("c", 1), ("d", 2)):
            tasks[name] = asyncio.create_task(use(name, limit, ends[name]))
            stack.callback(tasks[name].cancel)
            await asyncio.sleep(0)
        assert order == ["a", "b"]
        ends["a"].set()
        await tasks["a"]
        # d could go, but c was there before it.
        assert order == ["a", "b"]
        tasks["c"].cancel()
        await asyncio.wait([tasks["c"]])
        await asyncio.sleep(0)
        assert order == ["a", "b", "d"]
        for name in "bd":
            ends[name].set()
        await asyncio.gather(tasks["b"], tasks["d"])
    async with asyncio.timeout(1), slots.one_of(1):
        pass
