"""A plain reader of event streams that shows the bytes of each frame."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx

READ_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Frame:
    """What stood between two blank lines."""

    raw: bytes

    @property
    def lines(self) -> list[str]:
        """Its lines, split where a reader of event streams splits them."""
        text = self.raw.decode("utf-8")
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @property
    def is_comment(self) -> bool:
        """Whether each of its lines is a comment."""
        return all(line.startswith(":") for line in self.lines)

    def value(self, name: str) -> str:
        """The value of a field that is there once."""
        values = [line[len(name) + 2 :] for line in self.lines if line.startswith(f"{name}: ")]
        assert len(values) == 1, self.raw
        return values[0]

    @property
    def sequence(self) -> int:
        """Its id."""
        return int(self.value("id"))

    @property
    def event(self) -> str:
        """Its name."""
        return self.value("event")

    @property
    def envelope(self) -> dict[str, Any]:
        """Its JSON."""
        envelope: dict[str, Any] = json.loads(self.value("data"))
        return envelope

    @property
    def data(self) -> dict[str, Any]:
        """What the event tells."""
        data: dict[str, Any] = self.envelope["data"]
        return data


class Stream:
    """An open event stream."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._frames = self._split()

    def _split(self) -> Iterator[Frame]:
        rest = b""
        for chunk in self.response.iter_raw():
            *whole, rest = (rest + chunk).split(b"\n\n")
            for raw in whole:
                yield Frame(raw)
        assert rest == b"", "the stream ended inside a frame"

    def next_frame(self) -> Frame:
        """Wait for a frame, comments included."""
        return next(self._frames)

    def events(self) -> Iterator[Frame]:
        """The frames up to the stream's end, without comments."""
        return (frame for frame in self._frames if not frame.is_comment)

    def take(self, count: int) -> list[Frame]:
        """Wait for so many events."""
        events = self.events()
        return [next(events) for _ in range(count)]


@contextlib.contextmanager
def open_stream(
    client: httpx.Client,
    path: str,
    *,
    after: object = None,
    last_event_id: object = None,
) -> Iterator[Stream]:
    """Open a stream that must answer 200; *after* and *last_event_id* are the two cursors."""
    headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip, br"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = str(last_event_id)
    params = {} if after is None else {"after_sequence": str(after)}
    with client.stream("GET", path, headers=headers, params=params, timeout=READ_SECONDS) as answer:
        if answer.status_code != 200:
            answer.read()
            raise AssertionError(f"{path}: {answer.status_code} {answer.text}")
        yield Stream(answer)


def replay(client: httpx.Client, path: str, **cursor: object) -> list[Frame]:
    """Read the stream of a finished resource to its end."""
    with open_stream(client, path, **cursor) as stream:
        return list(stream.events())
