"""What an installation looks like from outside: a bar at a terminal, or JSON lines for a program."""

import json
import shutil
import sys
from typing import Any, Final, Protocol, TextIO

from cuda_installer.errors import Cancelled
from cuda_installer.state import STAGES
from cuda_installer.texts import Texts

WIDTH: Final = 21


class Reporter(Protocol):
    """Is told how an installation goes."""

    def stage(self, stage: str, line: str) -> None:
        """A stage began, or the one under way has *line* to tell."""

    def child(self, pid: int) -> None:
        """A child program was started."""

    def close(self) -> None:
        """The installation is over."""


class Bar:
    """A bar of stages. It counts stages: nobody knows how long one takes."""

    def __init__(self, texts: Texts, stream: TextIO = sys.stderr) -> None:
        self._texts = texts
        self._stream = stream
        self._live = stream.isatty()
        self._last = ""

    def stage(self, stage: str, line: str) -> None:
        """Draw the bar anew; off a terminal, write a line a stage."""
        number = STAGES.index(stage) + 1
        filled = WIDTH * number // len(STAGES)
        bar = "#" * filled + "-" * (WIDTH - filled)
        text = f"[{bar}] {number}/{len(STAGES)} {self._texts('stage.' + stage)}"
        if self._live:
            columns = shutil.get_terminal_size().columns
            shown = f"{text} · {line}" if line else text
            self._stream.write("\r\x1b[K" + shown[: columns - 1])
        elif text != self._last:
            self._stream.write(text + "\n")
        self._last = text
        self._stream.flush()

    def child(self, pid: int) -> None:
        """A person needn't know."""

    def close(self) -> None:
        """Leave the bar's line."""
        if self._live and self._last:
            self._stream.write("\n")


class JsonLines:
    """One JSON object a line."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream

    def write(self, message: dict[str, Any]) -> None:
        """Write a message at once. :class:`Cancelled` if nobody reads any more: the asker is dead."""
        try:
            self._stream.write(json.dumps(message) + "\n")
            self._stream.flush()
        except OSError:
            raise Cancelled from None

    def stage(self, stage: str, line: str) -> None:
        """Tell a stage."""
        self.write({"event": "stage", "stage": stage, "line": line})

    def child(self, pid: int) -> None:
        """Tell a child, so that the reader can end it if this program is killed."""
        self.write({"event": "child", "pid": pid})

    def close(self) -> None:
        """Nothing is left to tell."""


def json_line(line: bytes) -> dict[str, Any] | None:
    """Return the message of a line that ``--json`` wrote; None for anything else."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "event" in message else None
