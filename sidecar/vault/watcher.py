"""Notices what other programs do in the vault's folder."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

from sidecar.kernel.logging import get_logger
from sidecar.vault.names import is_note_name

log = get_logger(__name__)

WatchMode = Literal["events", "polling", "off"]

# Changes that come together are told together.
DEBOUNCE_MILLISECONDS: Final = 200
STEP_MILLISECONDS: Final = 50
TURN_MILLISECONDS: Final = 1000
# More than this many changed files are found faster by looking through the whole vault.
MANY_PATHS: Final = 400


class VaultWatcher:
    """Tells of changed paths on the event loop, from a thread of its own.

    *changed* gets the paths of notes, or None where the whole vault has to be looked through.
    *lost* is called if the system can't tell of changes (any more).
    """

    def __init__(
        self,
        root: Path,
        changed: Callable[[set[str] | None], None],
        lost: Callable[[], None],
    ) -> None:
        self._root = root
        self._changed = changed
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    async def stop(self) -> None:
        """End the watching; returns once the thread has ended."""
        self._stop.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 5.0)

    def _run(self) -> None:
        from watchfiles import watch  # noqa: PLC0415 - not needed to start

        watching = False
        try:
            for changes in watch(
                self._root,
                watch_filter=None,
                debounce=DEBOUNCE_MILLISECONDS,
                step=STEP_MILLISECONDS,
                rust_timeout=TURN_MILLISECONDS,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
                recursive=True,
                ignore_permission_denied=True,
            ):
                # What was written before the watch was in place made no event: by the first turn it
                # is, and the whole vault is looked through once more.
                found = self._sort(path for _, path in changes) if watching else None
                watching = True
                if found is None or found:
                    self._tell(lambda found=found: self._changed(found))  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001 - any of them means the same: fall back to polling
            log.warning("vault.watch_failed", extra={"error": type(error).__name__})
        if not self._stop.is_set():
            self._tell(self._lost)

    def _sort(self, absolute: Iterable[str]) -> set[str] | None:
        paths: set[str] = set()
        for name in absolute:
            try:
                parts = Path(name).relative_to(self._root).parts
            except ValueError:
                return None
            if any(part.startswith(".") for part in parts):
                continue
            if not parts:
                return None
            if is_note_name(parts[-1]) and not os.path.isdir(name):  # noqa: PTH112 - a string
                paths.add("/".join(parts))
            elif not os.path.isfile(name):  # noqa: PTH113 - a string
                # A folder, or gone: it may have been one.
                return None
        return None if len(paths) > MANY_PATHS else paths

    def _tell(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop has ended; nobody is there to be told.
            self._stop.set()
