"""The text that is taken from a document: blocks of Markdown, up to a limit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MOST_COLUMNS: Final = 256


class LimitReached(Exception):
    """The text is as long as it may be."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, an item or a row. No empty line parts it from one before it of the same *group*."""

    text: str
    group: object = None


class TextOutput:
    """Takes blocks until the limit is reached."""

    def __init__(self, limit: int) -> None:
        """*limit* is the most characters of the text."""
        self._limit = limit
        self._parts: list[str] = []
        self._length = 0
        self._group: object = None
        self.truncated = False

    def add(self, block: Block) -> None:
        """Append a block. Raises :class:`LimitReached` if it doesn't fit as a whole; its beginning is kept."""
        text = block.text.strip("\n").rstrip()
        if not text.strip():
            return
        if self._parts:
            together = block.group is not None and block.group == self._group
            text = ("\n" if together else "\n\n") + text
        self._group = block.group
        left = self._limit - self._length
        self._parts.append(text[:left])
        self._length += min(len(text), left)
        if len(text) > left:
            self.truncated = True
            raise LimitReached

    @property
    def text(self) -> str:
        """What was taken so far."""
        return "".join(self._parts).rstrip()


def in_cell(text: str) -> str:
    """Return *text* as it can stand in a cell of a Markdown table."""
    lines = [line.strip() for line in text.replace("|", "\\|").splitlines()]
    return "<br>".join(line for line in lines if line)


def table_rows(rows: Sequence[Sequence[str]]) -> Iterable[Block]:
    """Yield a Markdown table, a block for each row; the first row is its head."""
    width = min(max((len(row) for row in rows), default=0), MOST_COLUMNS)
    table = object()
    for index, row in enumerate(rows):
        cells = [in_cell(text) for text in row[:width]]
        cells += [""] * (width - len(cells))
        yield Block("| " + " | ".join(cells) + " |", table)
        if index == 0:
            yield Block("|" + " --- |" * width, table)
