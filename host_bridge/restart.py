"""When a crashed sidecar is started again."""

import time
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Exponential back-off with an end.

    The first restart waits ``first_delay`` seconds, each further one twice as long up to
    ``longest_delay``. A sidecar that served for ``stable_after`` seconds starts the count anew.
    More than ``max_crashes`` crashes within ``window`` seconds end it for good.
    """

    first_delay: float = 0.5
    longest_delay: float = 30.0
    max_crashes: int = 5
    window: float = 120.0
    stable_after: float = 60.0


@dataclass(frozen=True, slots=True)
class CrashReport:
    """A sidecar that ended without being asked, or did not start again.

    ``exit_code`` is negative for a signal, None where it never ran to an end of its own;
    ``restart_in`` the seconds to the next attempt, or None if there will be none. ``reason`` is
    the start error's code, or ``EXITED`` where the sidecar had been serving.
    """

    reason: str
    exit_code: int | None
    log_tail: str
    restart_in: float | None


class CrashHistory:
    """Counts crashes for a policy."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._row = 0
        self._times: deque[float] = deque()

    def next_delay(self, served_seconds: float, now: float | None = None) -> float | None:
        """Record a crash and give the seconds to wait before the restart, None to give up."""
        policy = self._policy
        moment = time.monotonic() if now is None else now
        if served_seconds >= policy.stable_after:
            self._row = 0
            self._times.clear()
        self._times.append(moment)
        while self._times[0] < moment - policy.window:
            self._times.popleft()
        if len(self._times) > policy.max_crashes:
            return None
        delay: float = min(policy.first_delay * 2.0 ** min(self._row, 64), policy.longest_delay)
        self._row += 1
        return delay
