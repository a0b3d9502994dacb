"""One open vault: its files, its write lock, and the work that keeps it known."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sidecar.kernel.database import Database, DatabaseClosedError
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.vault.files import VaultFiles
from sidecar.vault.intake import Intake, NoteIndexer
from sidecar.vault.reconcile import Reconciler
from sidecar.vault.watcher import VaultWatcher, WatchMode
from sidecar.vault.write_lock import WriteLock

log = get_logger(__name__)

POLL_SECONDS: Final = 1.0
# Events get lost: on network drives, in sync folders, in an overflow. Looking through everything
# finds those changes too, and takes a small part of the time however large the vault is.
FULL_LOOK_SECONDS: Final = 60.0
# What is written into a new folder before the system watches it makes no event.
SECOND_LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.5
RETRIES: Final = 4


class VaultSession:
    """An open vault."""

    def __init__(self, vault_id: str, root: Path, database: Database, indexer: NoteIndexer) -> None:
        self.vault_id = vault_id
        self.files = VaultFiles(root)
        self.lock = WriteLock()
        self.intake = Intake(vault_id, database, indexer)
        self.reconciler = Reconciler(self.files, self.intake, database, self.lock)
        self.watching: WatchMode = "off"
        self.available = True
        self.scanned_once = asyncio.Event()
        self.scanned_at: Callable[[], None] | None = None
        self._paths: set[str] = set()
        self._look_through = True
        self._look_twice = False
        self._wake = asyncio.Event()
        self._watcher: VaultWatcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._attempts: dict[str, int] = {}

    def start(self) -> None:
        """Begin to look through the vault and to follow changes, in the background."""
        self._watcher = VaultWatcher(self.files.root, self.changed, self._watch_lost)
        self._watcher.start()
        self.watching = "events"
        self._task = asyncio.create_task(self._follow(), name="vault-follow")

    async def close(self) -> None:
        """End the background work; a batch that is being stored is finished."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._watcher is not None:
            await self._watcher.stop()
        await self.lock.finish()
        self.watching = "off"

    @property
    def scanning(self) -> bool:
        """Whether files are being taken in, or are known to be waiting for it."""
        return not self.scanned_once.is_set() or self.reconciler.progress.running

    def changed(self, paths: set[str] | None) -> None:
        """Have files looked at soon: some, or with None all of them."""
        if paths is None:
            self._look_through = True
            self._look_twice = True
        else:
            self._paths |= paths
        self._wake.set()

    def _watch_lost(self) -> None:
        self.watching = "polling"
        self.changed(None)

    def _pause(self) -> float:
        if self._attempts:
            return RETRY_SECONDS
        if not self.available:
            return POLL_SECONDS
        if self._look_twice:
            return max(SECOND_LOOK_SECONDS, 5 * self.reconciler.walk_seconds)
        if self.watching == "events":
            return max(FULL_LOOK_SECONDS, 200 * self.reconciler.walk_seconds)
        return max(POLL_SECONDS, 10 * self.reconciler.walk_seconds)

    async def _follow(self) -> None:
        await asyncio.to_thread(self.files.remove_leftovers)
        while True:
            try:
                await self._look()
                self.available = True
            except ProjectError as error:
                # The folder is gone for now; what is known of it stays.
                self.available = False
                self._look_through = True
                log.warning("vault.unavailable", extra={"code": error.code})
            except DatabaseClosedError:
                return
            except Exception:
                log.exception("vault.follow_failed")
                self._look_through = True
                await asyncio.sleep(RETRY_SECONDS)
            try:
                async with asyncio.timeout(self._pause()):
                    await self._wake.wait()
            except TimeoutError:
                if not self._attempts:
                    self._look_through = True
                    self._look_twice = False

    async def _look(self) -> None:
        self._wake.clear()
        paths, self._paths = self._paths, set()
        look_through, self._look_through = self._look_through, False
        if look_through:
            await self.reconciler.scan()
            self.scanned_once.set()
            if self.scanned_at is not None:
                self.scanned_at()
        if paths:
            await self.reconciler.take_in(paths)
        await self._look_again()

    async def _look_again(self) -> None:
        """Give half-written files some time, then take them as they are."""
        unsettled, self.reconciler.unsettled = self.reconciler.unsettled, set()
        settled = set()
        for path in list(self._attempts):
            if path not in unsettled:
                del self._attempts[path]
        for path in unsettled:
            self._attempts[path] = self._attempts.get(path, 0) + 1
            if self._attempts[path] > RETRIES:
                settled.add(path)
                del self._attempts[path]
        if settled:
            await self.reconciler.take_in(settled, settled=True)
        self._paths |= set(self._attempts)
