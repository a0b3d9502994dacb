"""Blocking work that is followed from the event loop."""

import asyncio
import threading
from typing import Any, cast

import pytest

from sidecar.local_models import blocking_work
from sidecar.local_models.blocking_work import BlockingWork, BrokenOff, followed


class Work(BlockingWork):
    """Goes on once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            while not self.may_end.wait(0.01):
                self.check()
            self.bytes_done = self.total = 7
        finally:
            self.ended.set()


class Progress:
    """Lets the work end while it is told of something else, or fails to tell."""

    def __init__(self, work: Work, error: Exception | None = None) -> None:
        self.told: list[tuple[int, int | None, bool]] = []
        self._work = work
        self._error = error

    async def reach(self, current: int, total: int | None, *, now: bool = False) -> None:
        self.told.append((current, total, now))
        if self._error is not None:
            raise self._error
        self._work.may_end.set()
        await asyncio.to_thread(self._work.ended.wait, 10)
        await asyncio.sleep(0.1)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_work, "_POLL_SECONDS", 0.05)


async def test_the_end_is_told_of_however_soon_it_comes() -> None:
    work = Work()
    progress = Progress(work)
    await followed(work, cast("Any", progress))
    assert progress.told == [(0, None, False), (7, 7, True)]


async def test_work_ends_before_a_failure_is_raised() -> None:
    work = Work()
    with pytest.raises(ValueError, match="not told"):
        await followed(work, cast("Any", Progress(work, ValueError("not told"))))
    assert work.ended.is_set()
    with pytest.raises(BrokenOff):
        work.check()
