"""Writes and hashes what arrives in a thread, while more of it arrives."""

import asyncio
from io import FileIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hashlib import _Hash

# So much may wait to be written; then whoever brings more waits too.
MOST_WAITING: Final = 4 << 20


class HashingSink:
    """A file that is written in order. ``digest`` is None where there is nothing to hash.

    Whoever makes one must close it; then everything that was put is in the file.
    """

    def __init__(self, output: FileIO, digest: "_Hash | None") -> None:
        self._output = output
        self._digest = digest
        self._loop = asyncio.get_running_loop()
        self._blocks: list[bytes] = []
        self._waiting = 0
        self._job: asyncio.Future[None] | None = None
        self._error: BaseException | None = None

    async def put(self, block: bytes) -> None:
        """Add to the file; raises OSError for an earlier block that could not be written."""
        self._blocks.append(block)
        self._waiting += len(block)
        self._go_on()
        while self._waiting > MOST_WAITING and self._job is not None:
            await asyncio.wait([self._job])
        self._raise()

    async def close(self) -> None:
        """Wait until everything is written; raises OSError if that failed."""
        while self._job is not None:
            await asyncio.wait([self._job])
        self._raise()

    def _go_on(self) -> None:
        if self._blocks and self._job is None and self._error is None:
            blocks, self._blocks, self._waiting = self._blocks, [], 0
            self._job = self._loop.run_in_executor(None, self._consume, blocks)
            self._job.add_done_callback(self._on_done)

    def _consume(self, blocks: list[bytes]) -> None:
        for block in blocks:
            view = memoryview(block)
            while view:
                view = view[self._output.write(view) :]
            if self._digest is not None:
                self._digest.update(block)

    def _on_done(self, job: "asyncio.Future[None]") -> None:
        self._job = None
        self._error = job.exception()
        self._go_on()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
