"""Logs: one line of JSON a record, to stderr and to a rotating file, never with a secret in it.

Nothing that logs ever waits for a reader: a host that doesn't read stderr loses lines there, and
nothing else.
"""

import contextlib
import json
import logging
import logging.handlers
import os
import queue
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.clock import format_utc
from sidecar.kernel.redaction import redactor

LOG_FILE_NAME: Final = "sidecar.log"
LOG_FILE_BYTES: Final = 10 * 1024 * 1024
LOG_FILES_KEPT: Final = 5
_STDERR_BACKLOG: Final = 2000

_STANDARD: Final = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a module. Log an event name, and what it is about in ``extra``."""
    return logging.getLogger(name)


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object on one line, redacted."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, Any] = {
            "time": format_utc(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": redactor.text(record.getMessage()),
        }
        extra = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        entry |= redactor.value(extra)
        if record.exc_info:
            entry["stack"] = redactor.text(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False, default=_shown)


def _shown(value: object) -> str:
    return redactor.text(str(value))


class StderrHandler(logging.Handler):
    """Hands lines to a thread that writes them to a descriptor, and drops them when it can't."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes] = queue.Queue(_STDERR_BACKLOG)
        self._idle = threading.Event()
        self._idle.set()
        threading.Thread(target=self._drain, name="log-stderr", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record, or drop it if nobody reads."""
        line = (self.format(record) + "\n").encode("utf-8", "replace")
        self._idle.clear()
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(line)

    def _drain(self) -> None:
        while True:
            line = self._lines.get()
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:
                # Nobody is there to read: the file still gets every line.
                self._idle.set()
                return
            if self._lines.empty():
                self._idle.set()

    def finish(self, timeout: float) -> None:
        """Wait up to *timeout* seconds until what was queued is written."""
        self._idle.wait(timeout)


def configure_logging(level: str, logs: Path | None) -> None:
    """Send the logs of this process to stderr and, if *logs* is a folder, to a file in it."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    formatter = JsonFormatter()
    handlers: list[logging.Handler] = [
        StderrHandler(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    ]
    if logs is not None:
        handlers.append(
            logging.handlers.RotatingFileHandler(
                logs / LOG_FILE_NAME,
                maxBytes=LOG_FILE_BYTES,
                backupCount=LOG_FILES_KEPT,
                encoding="utf-8",
                delay=True,
            )
        )
    for handler in handlers:
        handler.setFormatter(formatter)
        root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    # A broken log line must not print a stack to stderr.
    logging.raiseExceptions = False


def finish_logging(timeout: float = 0.5) -> None:
    """Write out what is queued before the process ends, without waiting for a reader for long."""
    for handler in logging.getLogger().handlers:
        handler.flush()
        if isinstance(handler, StderrHandler):
            handler.finish(timeout)
