"""The shapes of the catalogue's entries."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """One text for a reader, in both languages."""

    en: str
    zh: str


class ErrorSpec(NamedTuple):
    """An error code's HTTP status and its default message in both languages."""

    status: int
    en: str
    zh: str


class FatalSpec(NamedTuple):
    """A start failure's process exit status and its message in both languages."""

    exit_code: int
    en: str
    zh: str
