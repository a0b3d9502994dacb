"""Which sources a reply cites: the numbers whose whole mark ``[n]`` stands in its text.

Marks in code, in links and behind a backslash are text, so the text is read as Markdown.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# [12], and [cit_…] as old answers have it.
_MARK: Final = re.compile(
    r"\[(?:(?P<number>[1-9]\d{0,5})|(?P<citation_id>cit_[A-Za-z0-9_-]{1,200}))\]"
)
# A paragraph with more brackets than anyone writes would keep the parser busy for minutes.
_MOST_BRACKETS: Final = 2000
_KEPT_RESULTS: Final = 500

Source = tuple[int, str]
"""Number and citation id."""


@lru_cache(_KEPT_RESULTS)
def used_numbers(content: str, sources: tuple[Source, ...]) -> tuple[int, ...]:
    """Return the numbers of *sources* that *content* cites, in the order of their first mark."""
    if not sources or _MARK.search(content) is None:
        return ()
    by_id = {citation_id: number for number, citation_id in sources}
    numbers = {number for number, _ in sources}
    used: dict[int, None] = {}
    for mark in _marks(content):
        number = int(mark["number"]) if mark["number"] else by_id.get(mark["citation_id"])
        if number in numbers:
            used.setdefault(number)
    return tuple(used)


def _marks(content: str) -> Iterator[re.Match[str]]:
    parser = _parser()
    environment: dict[str, object] = {}
    for token in parser.parse(content, environment):
        if token.type != "inline" or _MARK.search(token.content) is None:
            continue
        if token.content.count("[") > _MOST_BRACKETS:
            continue
        children: list[Token] = []
        parser.inline.parse(token.content, parser, environment, children)
        for text in _plain_texts(children):
            yield from _MARK.finditer(text)


def _plain_texts(tokens: Sequence["Token"]) -> Iterator[str]:
    """Yield the pieces of plain text outside of links; what is escaped parts them."""
    pieces: list[str] = []
    links = 0
    for token in tokens:
        if token.type == "text" and not links:
            pieces.append(token.content)
            continue
        links += (token.type == "link_open") - (token.type == "link_close")
        yield "".join(pieces)
        pieces = []
    yield "".join(pieces)


@lru_cache(1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not needed before the first reply

    parser = MarkdownIt("commonmark").enable("table")
    # Only paragraphs with marks are looked into, and those are read one by one.
    parser.disable("inline")
    return parser
