"""Find the processes of a sidecar and see them go."""

import os
import time
from collections.abc import Iterable

import psutil

MARK_VARIABLE = "NOTES_SMOKE_RUN"
"""Set in the environment of all that a run starts; children inherit it."""
_POLL_SECONDS = 0.05


def marked(mark: str) -> set[psutil.Process]:
    """The living processes that a run's mark is found in, this one not among them."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK_VARIABLE) == mark:
                found.add(process)
        except (psutil.Error, OSError):
            continue  # It ended meanwhile, or belongs to somebody else.
    return {process for process in found if lives(process)}


def tree(pid: int) -> set[psutil.Process]:
    """A process and all below it at this moment; empty if it is gone."""
    try:
        process = psutil.Process(pid)
        return {process, *process.children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def lives(process: psutil.Process) -> bool:
    """Whether it runs; one that ended and was not reaped by its parent does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(processes: Iterable[psutil.Process], limit: float) -> list[psutil.Process]:
    """Wait until none lives; gives those that still do after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    left = [process for process in processes if lives(process)]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = [process for process in left if lives(process)]
    return left


def describe(processes: Iterable[psutil.Process]) -> str:
    """Pids with the beginning of their command lines."""
    texts: list[str] = []
    for process in processes:
        try:
            texts.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        except psutil.Error:
            texts.append(str(process.pid))
    return "; ".join(texts)
