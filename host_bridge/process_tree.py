"""End a process with everything that it started, with the standard library alone.

A sidecar ends its own children; this is for one that no longer can.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

_LISTING_TIMEOUT_SECONDS = 5


def descendants(pid: int) -> list[int]:
    """The processes below ``pid``, parents before their children, at this moment.

    Gives nothing on Windows, where :func:`end_tree` leaves the walk to the system.
    """
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def end_tree(pid: int, *, force: bool) -> None:
    """Ask ``pid`` and its descendants to end, or kill them with ``force``.

    Windows has no way to ask a program without a window, so there it always kills.
    """
    if sys.platform == "win32":
        # Not tried on a real Windows: /T takes the tree, /F is needed without a window.
        subprocess.run(
            ["taskkill", "/T", "/F", "/PID", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=subprocess.CREATE_NO_WINDOW,
            timeout=_LISTING_TIMEOUT_SECONDS,
            check=False,
        )
        return
    signal_number = signal.SIGKILL if force else signal.SIGTERM
    # Listed before the first signal: orphans of a dead parent could not be found any more.
    for member in [pid, *descendants(pid)]:
        try:
            os.kill(member, signal_number)
        except ProcessLookupError:
            continue


def _parents() -> list[tuple[int, int]]:
    if sys.platform == "win32":
        return []
    if Path("/proc/self/stat").exists():
        return _parents_from_proc()
    return _parents_from_ps()


def _parents_from_proc() -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_bytes()
        except OSError:
            continue  # It ended while we were looking.
        # The second field is the program's name in brackets and may hold anything, ")" too.
        pairs.append((int(folder.name), int(stat.rpartition(b")")[2].split()[1])))
    return pairs


def _parents_from_ps() -> list[tuple[int, int]]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid="],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_LISTING_TIMEOUT_SECONDS,
        check=True,
    )
    rows = (line.split() for line in listing.stdout.splitlines())
    return [(int(row[0]), int(row[1])) for row in rows if len(row) == 2]
