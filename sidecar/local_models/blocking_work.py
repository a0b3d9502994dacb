"""Work of seconds to minutes on a disk: runs in a thread, tells how far it is, and can be broken off."""

import asyncio
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sidecar.local_models.downloading import TransferProgress

_POLL_SECONDS: Final = 0.2


class BrokenOff(Exception):
    """Somebody wants the work's end."""


class BlockingWork(ABC):
    """One piece of work. ``bytes_done`` and ``total`` may be read in any thread while it runs."""

    def __init__(self) -> None:
        self.bytes_done = 0
        self.total: int | None = None
        self._end = threading.Event()

    @abstractmethod
    def run(self) -> None:
        """Do the work; call :meth:`check` and count ``bytes_done`` with every block."""

    def break_off(self) -> None:
        """Ask for the end; from any thread."""
        self._end.set()

    def check(self) -> None:
        """Raise :class:`BrokenOff` once somebody asked for the end."""
        if self._end.is_set():
            raise BrokenOff


async def followed(work: BlockingWork, progress: "TransferProgress") -> None:
    """Do *work* in a thread and tell how far it is; raises what it raises.

    Whatever ends this, a cancellation or a progress that can't be told, the thread has ended before.
    """
    running = asyncio.create_task(asyncio.to_thread(work.run))
    try:
        while True:
            done, _ = await asyncio.wait([running], timeout=_POLL_SECONDS)
            # The end is told of in any case, however fast it follows on the last look.
            await progress.reach(work.bytes_done, work.total, now=bool(done))
            if done:
                return running.result()
    except BaseException:
        work.break_off()
        await asyncio.wait([running])
        # Whatever it ended with by then is of no interest any more.
        running.exception()
        raise
