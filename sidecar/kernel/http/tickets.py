"""Tickets: addresses that open one GET path without a header, for elements that can't send one."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

TICKET_SECONDS: Final = 600
TICKET_PARAMETER: Final = "ticket"
_MAXIMUM: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Ticket:
    path: str
    expires: float


class Tickets:
    """The tickets of this process; they end with it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[str, _Ticket] = {}

    def issue(self, path: str) -> str:
        """Return a ticket for *path*, good for :data:`TICKET_SECONDS`."""
        now = self._clock()
        if len(self._tickets) >= _MAXIMUM:
            self._tickets = {
                name: kept for name, kept in self._tickets.items() if kept.expires > now
            }
        while len(self._tickets) >= _MAXIMUM:
            del self._tickets[next(iter(self._tickets))]
        name = secrets.token_urlsafe(32)
        self._tickets[name] = _Ticket(path, now + TICKET_SECONDS)
        return name

    def opens(self, name: str, method: str, path: str) -> bool:
        """Whether the ticket *name* opens this request."""
        ticket = self._tickets.get(name)
        return (
            ticket is not None
            and method == "GET"
            and ticket.path == path
            and self._clock() < ticket.expires
        )
