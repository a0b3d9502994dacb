"""The event log: every follower sees every event once, in order, however it comes and goes."""

import asyncio
import contextlib
from typing import Any

import pytest

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.events import RECENT_EVENTS, EventLog, StoredEvent
from tests.kernel.waiting import until

RESOURCE = "resource_1"


async def _append(
    database: Database, events: EventLog, name: str, *, terminal: bool = False, **data: Any
) -> int:
    return await database.write(
        lambda tx: events.append(tx, RESOURCE, name, data, terminal=terminal)
    )


async def _collect(events: EventLog, after: int = 0) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    async with asyncio.timeout(60):
        async for batch in events.subscribe(RESOURCE, after):
            found += batch
    return found


def _sequences(found: list[StoredEvent]) -> list[int]:
    return [event.sequence for event in found]


async def test_sequences_rise_by_one_within_each_resource(
    database: Database, events: EventLog
) -> None:
    for expected in (1, 2, 3):
        assert await _append(database, events, "Told") == expected
    assert await database.write(lambda tx: events.append(tx, "other", "Told", {})) == 1
    assert await events.last_sequence(RESOURCE) == 3
    assert await events.last_sequence("nobody") == 0


async def test_an_event_of_a_failed_write_never_happened(
    database: Database, events: EventLog
) -> None:
    follower = asyncio.create_task(_collect(events))

    def failing(tx: Transaction) -> None:
        events.append(tx, RESOURCE, "Never", {})
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - ours, of three lines above
        await database.write(failing)
    await _append(database, events, "Completed", terminal=True)
    assert [(event.sequence, event.event) for event in await follower] == [(1, "Completed")]


TOTAL = 3000


async def _slow(events: EventLog, after: int) -> list[int]:
    seen: list[int] = []
    async for batch in events.subscribe(RESOURCE, after):
        seen += _sequences(batch)
        await asyncio.sleep(0.005)
    return seen


async def _steady(events: EventLog, after: int) -> list[int]:
    return _sequences(await _collect(events, after))


async def _restless(events: EventLog, after: int) -> list[int]:
    """Leaves after each batch and comes again with its cursor."""
    seen: list[int] = []
    while not seen or seen[-1] < TOTAL:
        subscription = events.subscribe(RESOURCE, seen[-1] if seen else after)
        async with contextlib.aclosing(subscription):
            seen += _sequences(await anext(subscription))
    return seen


async def test_twenty_followers_lose_nothing(database: Database, events: EventLog) -> None:
    """They come at any time, with any cursor; some read slowly, some leave and come again."""

    async def append_all() -> None:
        for start in range(1, TOTAL + 1, 50):
            numbers = range(start, start + 50)
            await asyncio.gather(
                *(_append(database, events, "Told", terminal=n == TOTAL) for n in numbers)
            )

    followers: dict[asyncio.Task[list[int]], int] = {}
    async with asyncio.timeout(120):
        appending = asyncio.create_task(append_all())
        for number in range(20):
            after = number * 7 if number % 4 else 0
            follow = (_slow, _steady, _restless)[number % 3]
            followers[asyncio.create_task(follow(events, after))] = after
            # Those that come later find a part of it in the past.
            while await events.last_sequence(RESOURCE) < number * 100:  # noqa: ASYNC110
                await asyncio.sleep(0)
        await appending
        for task, after in followers.items():
            assert await task == list(range(after + 1, TOTAL + 1))


async def test_a_follower_far_behind_reads_what_memory_no_longer_holds(
    database: Database, events: EventLog
) -> None:
    total = RECENT_EVENTS + 700
    behind = events.subscribe(RESOURCE)
    first = await _first(behind, database, events)
    await database.write(
        lambda tx: [
            events.append(tx, RESOURCE, "Told", {}, terminal=number == total)
            for number in range(2, total + 1)
        ]
    )
    seen = [*first]
    async with asyncio.timeout(60):
        async for batch in behind:
            seen += _sequences(batch)
    assert seen == list(range(1, total + 1))


async def _first(subscription: Any, database: Database, events: EventLog) -> list[int]:
    waiting = asyncio.create_task(anext(subscription))
    await asyncio.sleep(0)
    await _append(database, events, "Told")
    async with asyncio.timeout(10):
        return _sequences(await waiting)


@pytest.mark.parametrize("after", range(6))
async def test_a_follower_goes_on_after_any_event(
    database: Database, events: EventLog, after: int
) -> None:
    for number in range(1, 7):
        await _append(database, events, "Told", terminal=number == 6)
    assert _sequences(await _collect(events, after)) == list(range(after + 1, 7))


async def test_a_resource_that_runs_again_is_followed_past_its_first_end(
    database: Database, events: EventLog
) -> None:
    await _append(database, events, "Failed", terminal=True)
    await _append(database, events, "Queued")
    follower = asyncio.create_task(_collect(events))
    await asyncio.sleep(0)
    await _append(database, events, "Completed", terminal=True)
    assert _sequences(await follower) == [1, 2, 3]
    assert await events.is_over(RESOURCE, 3)
    assert not await events.is_over(RESOURCE, 1)


async def test_closing_ends_followers_after_what_they_have_to_get(
    database: Database, events: EventLog
) -> None:
    for _ in range(3):
        await _append(database, events, "Told")
    early = asyncio.create_task(_collect(events))
    await until(lambda: early.done() or bool(events._channels))
    await _append(database, events, "Told")
    events.close()
    found = await early
    assert _sequences(found) == list(range(1, len(found) + 1))
    assert not any(event.terminal for event in found)


async def test_silence_is_told_by_an_empty_list(database: Database, events: EventLog) -> None:
    async with contextlib.aclosing(events.subscribe(RESOURCE, heartbeat=0.01)) as subscription:
        async with asyncio.timeout(10):
            assert await anext(subscription) == []
            assert await anext(subscription) == []
            await _append(database, events, "Told")
            batch: list[StoredEvent] = []
            while not batch:
                batch = await anext(subscription)
    assert _sequences(batch) == [1]


async def test_a_page_tells_whether_there_is_more(database: Database, events: EventLog) -> None:
    for _ in range(5):
        await _append(database, events, "Told")
    found, more = await events.page(RESOURCE, 0, 3)
    assert (_sequences(found), more) == ([1, 2, 3], True)
    found, more = await events.page(RESOURCE, 3, 3)
    assert (_sequences(found), more) == ([4, 5], False)


async def test_nothing_is_kept_of_a_resource_that_nobody_follows(
    database: Database, events: EventLog
) -> None:
    await _append(database, events, "Completed", terminal=True)
    await _collect(events)
    assert events._channels == {}
