"""When a call is made once more, and with what: never after the first byte, and never what may have been done."""

import random
from dataclasses import dataclass
from typing import Any, Final

from sidecar.providers.failures import UpstreamError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after how many seconds."""

    repeats: int = 2
    first_wait: float = 0.5
    longest_wait: float = 5.0
    """Who asks for a longer wait gets none: the user is told instead."""


DEFAULT_POLICY: Final = RetryPolicy()

# Fields that some servers refuse, though the protocol has them.
_OPTIONAL: Final = ("stream_options", "temperature")
# A server that refuses one thing after another is not bargained with for ever.
_MOST_ADJUSTMENTS: Final = 3

_SWAPPED: Final = (
    ("max_tokens", "max_completion_tokens"),
    ("max_completion_tokens", "max_tokens"),
)


def wait_before_repeat(error: UpstreamError, made: int, policy: RetryPolicy) -> float | None:
    """Return how long to wait before a call is repeated after *made* repeats; None to give up."""
    refused_connection = "upstream_status" not in error.details
    repeats = min(policy.repeats, 1) if refused_connection else policy.repeats
    if not error.not_begun or made >= repeats:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= policy.longest_wait else None
    # Not all at once again.
    spread = 0.75 + random.random() / 2  # noqa: S311 - no secret
    return float(policy.first_wait * 2**made * spread)


def adjusted_body(body: dict[str, Any], error: UpstreamError) -> dict[str, Any] | None:
    """Return *body* without what the provider said it doesn't know, None if that isn't the matter."""
    if error.details.get("upstream_status") not in (400, 422):
        return None
    for name in _OPTIONAL:
        if name in body and name in error.mentions:
            return {key: value for key, value in body.items() if key != name}
    for given, wanted in _SWAPPED:
        if given in body and wanted not in body and wanted in error.mentions:
            kept = {key: value for key, value in body.items() if key != given}
            return {**kept, wanted: body[given]}
    return None


class Repeats:
    """Decides after each failure of one call whether, when and with what body it is made again."""

    def __init__(self, body: dict[str, Any], policy: RetryPolicy) -> None:
        self.body = body
        self._policy = policy
        self._made = 0
        self._adjusted = 0

    def wait_after(self, error: UpstreamError) -> float | None:
        """Return how long to wait before the call is made again with :attr:`body`; None to give up."""
        adjusted = adjusted_body(self.body, error) if self._adjusted < _MOST_ADJUSTMENTS else None
        if adjusted is not None:
            self.body = adjusted
            self._adjusted += 1
            return 0.0
        wait = wait_before_repeat(error, self._made, self._policy)
        self._made += 1
        return wait
