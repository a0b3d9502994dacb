"""What a specimen is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.protocol.live import AppClients, LiveApp
from tests.protocol.operations import Operation

Upload = tuple[str, bytes, str]

LEFT_OUT: Final = object()


@dataclass(frozen=True)
class Request:
    """The parts of a request that its operation leaves open."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = LEFT_OUT
    files: Mapping[str, Upload] | None = None

    def send(
        self,
        client: httpx.Client,
        operation: Operation,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send it and read the whole answer; a stream is read to its end."""
        body: dict[str, Any] = {}
        if self.json is not LEFT_OUT:
            body["json"] = self.json
        if self.files is not None:
            body["files"] = self.files
        return client.request(
            operation.method,
            operation.address(self.path),
            params=dict(self.query) or None,
            headers=dict(headers or {}),
            **body,
        )


@dataclass(frozen=True)
class Specimen:
    """A request that succeeds with `status`.

    `make` makes what the request needs beforehand. Its body has the fields that the contract first required and no
    other. `kept` names fields whose text comes back unchanged in the field of the same name, `secrets` those that take a
    secret; a dot leads into an object. `filters` names fields with a path of the vault that selects among what is
    known and leads to no file.
    """

    status: int
    make: Callable[[LiveApp], Request] = lambda _: Request()
    kept: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobSpecimen:
    """Where the jobs of a kind live: `create` makes a request that POST to `collection` turns into one.

    `shown` is false where a job has no path of its own and shows in the state of something else.
    `long` makes a request whose work takes many seconds, and `work_seconds` tells how much processor time such work has
    used up by now; both are None where the work is over in no time.
    """

    collection: str
    create: Callable[[AppClients], Request]
    terminal_events: tuple[str, str, str] = ("Completed", "Failed", "Cancelled")
    shown: bool = True
    long: Callable[[LiveApp], Request] | None = None
    work_seconds: Callable[[LiveApp], float] | None = None
