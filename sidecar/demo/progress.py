"""Progress bars on a terminal, and plain lines elsewhere."""

import contextlib
import sys
import time
import unicodedata
from collections.abc import Iterator
from typing import Final, TextIO

from sidecar.kernel.catalogue import text

BAR_CELLS: Final = 28
TITLE_CELLS: Final = 34
_REDRAW_SECONDS: Final = 0.1


def cells(text: str) -> int:
    """Return how many terminal cells *text* takes: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def pad(text: str, width: int) -> str:
    """Return *text* with blanks up to *width* cells."""
    return text + " " * max(0, width - cells(text))


class StepBar:
    """The line of one step: a title, a bar while it works, its time at the end."""

    def __init__(self, title: str, stream: TextIO = sys.stderr) -> None:
        self._title = title
        self._stream = stream
        self._live = stream.isatty()
        self._started = time.perf_counter()
        self._drawn = 0.0
        self.show(None, "")

    def show(self, percent: float | None, message: str) -> None:
        """Draw the bar; *percent* None means that how far it is isn't known."""
        now = time.perf_counter()
        if not self._live or (now - self._drawn < _REDRAW_SECONDS and percent != 100):
            return
        self._drawn = now
        filled = round(BAR_CELLS * (percent or 0) / 100)
        bar = "█" * filled + "░" * (BAR_CELLS - filled)
        shown = f"{percent:3.0f}%" if percent is not None else "    "
        self._stream.write(f"\r\x1b[K{pad(self._title, TITLE_CELLS)} {bar} {shown} {message}")
        self._stream.flush()

    def finish(self, mark: str = "✓") -> float:
        """Replace the bar by the time that the step took, in seconds, and return it."""
        seconds = time.perf_counter() - self._started
        start = "\r\x1b[K" if self._live else ""
        self._stream.write(f"{start}{mark} {pad(self._title, TITLE_CELLS)} {seconds:7.2f} s\n")
        self._stream.flush()
        return seconds


@contextlib.contextmanager
def timed_step(seconds: dict[str, float], name: str, **params: object) -> Iterator[StepBar]:
    """Show a step while it lasts and note its time under *name*; one that fails gets a cross and no time."""
    bar = StepBar(text(f"demo.step.{name}", None, **params))
    try:
        yield bar
    except BaseException:
        bar.finish("✗")
        raise
    seconds[name] = round(bar.finish(), 3)
