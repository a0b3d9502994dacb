"""Cuts the bytes of a stream into frames, wherever the network cut them before."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sidecar.providers.failures import UpstreamError

LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest line: more without a line's end is no stream of events."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a stream. ``event`` is its name, where the protocol names them."""

    data: str
    event: str | None = None

    def json(self) -> dict[str, Any]:
        """Return the data as a JSON object; raises ``PROVIDER_INVALID_RESPONSE``."""
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError) as error:
            raise UpstreamError("PROVIDER_INVALID_RESPONSE", {}) from error
        if not isinstance(value, dict):
            raise UpstreamError("PROVIDER_INVALID_RESPONSE", {})
        return value


class FrameReader(Protocol):
    """Takes bytes, gives the frames that are whole."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the frames that *chunk* completes."""
        ...

    def rest(self) -> list[Frame]:
        """Return what the end of the stream completes: a last frame without its line's end."""
        ...


class _Lines:
    """Whole lines. They are decoded whole, so that a cut inside a character does no harm."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._length = 0
        self._begun = False
        self._after_return = False

    def feed(self, chunk: bytes) -> list[str]:
        if self._after_return and chunk:
            self._after_return = False
            # The second half of a line's end that was cut in the middle.
            chunk = chunk.removeprefix(b"\n")
        *ended, rest = _LINE_END.split(chunk)
        lines = []
        for part in ended:
            lines.append(self._decoded(b"".join((*self._kept, part))))
            self._kept, self._length = [], 0
        if rest:
            self._kept.append(rest)
            self._length += len(rest)
        elif chunk:
            self._after_return = chunk.endswith(b"\r")
        if self._length > LINE_BYTES:
            raise UpstreamError("PROVIDER_INVALID_RESPONSE", {})
        return lines

    def rest(self) -> str:
        kept, self._kept = b"".join(self._kept), []
        return self._decoded(kept) if kept else ""

    def _decoded(self, line: bytes) -> str:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        return line.decode("utf-8", "replace")


class SseReader:
    """Server-sent events."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._event: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the events that *chunk* completes."""
        frames = []
        for line in self._lines.feed(chunk):
            frame = self._take(line)
            if frame is not None:
                frames.append(frame)
        return frames

    def rest(self) -> list[Frame]:
        """Return the last event if the stream ended without the blank line after it."""
        line = self._lines.rest()
        if line:
            self._take(line)
        frame = self._take("")
        return [frame] if frame is not None else []

    def _take(self, line: str) -> Frame | None:
        if not line:
            frame = Frame("\n".join(self._data), self._event) if self._data else None
            self._event, self._data = None, []
            return frame
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None


class NdjsonReader:
    """JSON objects, one a line."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the objects that *chunk* completes."""
        return [Frame(line) for line in self._lines.feed(chunk) if line.strip()]

    def rest(self) -> list[Frame]:
        """Return the last object if the stream ended without its line's end."""
        line = self._lines.rest()
        return [Frame(line)] if line.strip() else []
