"""Runs the checks at the same time, and takes whatever goes wrong in one as its finding."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from sidecar.doctor.findings import Finding, NamedFinding, message

Check = Callable[[], Finding]

# Far more than a check takes: a first import on a slow disk must not count as a failure.
LIMIT_SECONDS: Final = 30.0
_REASON_LENGTH: Final = 200


def run_checks(
    checks: Mapping[str, Check], limit_seconds: float = LIMIT_SECONDS
) -> list[NamedFinding]:
    """Return a finding for each check, in the order of *checks*.

    A check that raises, or that isn't done within *limit_seconds* of the start, becomes an error.
    """
    found: dict[str, Finding] = {}
    threads = [
        # A daemon, so that one that hangs for good does not keep the program from ending.
        threading.Thread(target=_run_into, args=(found, name, check), name=name, daemon=True)
        for name, check in checks.items()
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit_seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    done = dict(found)
    return [NamedFinding(name, done.get(name) or _unanswered(limit_seconds)) for name in checks]


def _run_into(found: dict[str, Finding], name: str, check: Check) -> None:
    try:
        found[name] = check()
    except Exception as error:  # noqa: BLE001 - what fails here is what the user wants to know
        found[name] = Finding(
            "error",
            message("check_failed", reason=short_reason(error)),
            message("check_failed.hint"),
        )


def _unanswered(limit_seconds: float) -> Finding:
    return Finding(
        "error",
        message("check_unanswered", seconds=f"{limit_seconds:g}"),
        message("check_failed.hint"),
    )


def short_reason(error: BaseException) -> str:
    """Return the kind of an exception and the first line of its text, cut to a readable length."""
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return reason if len(reason) <= _REASON_LENGTH else f"{reason[: _REASON_LENGTH - 3]}..."
