"""The piece of a block that a hit shows."""

import re
from collections.abc import Sequence
from typing import Final

from sidecar.retrieval.blocks import BlockKind, plain

SNIPPET_CHARS: Final = 240
_BLANKS: Final = re.compile(r"\s+")


def snippet_of(text: str, kind: BlockKind, words: Sequence[str]) -> str:
    """Return plain text of a block, around the first of *words* (lower case) that it holds."""
    shown = _BLANKS.sub(" ", plain(text, kind)).strip()
    if len(shown) <= SNIPPET_CHARS:
        return shown
    lower = shown.lower()
    places = [place for place in (lower.find(word) for word in words if word) if place >= 0]
    first = min(places, default=0)
    start = max(0, first - SNIPPET_CHARS // 3)
    end = min(len(shown), start + SNIPPET_CHARS)
    start = max(0, end - SNIPPET_CHARS)
    start, end = _at_blanks(shown, start, end)
    return f"{'…' if start else ''}{shown[start:end].strip()}{'…' if end < len(shown) else ''}"


def _at_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Move the ends to blanks that are near, so that no word is cut."""
    if start:
        blank = text.find(" ", start, start + 20)
        start = blank + 1 if blank >= 0 else start
    if end < len(text):
        blank = text.rfind(" ", end - 20, end)
        end = blank if blank >= 0 else end
    return start, end
