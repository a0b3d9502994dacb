"""Keeps what is logged, as it would be written."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.kernel.logging import JsonFormatter


@contextmanager
def log_lines() -> Iterator[list[str]]:
    """Yield a list that every line of every level goes into, until the block ends."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Keep(logging.DEBUG)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
