"""Places to break lines at, for what lays out pages: within a word of several elements it finds none.

A word may go on from one element to the next, as in ``**bold**plain``. What lays out pages breaks a
word within one element alone, and only if the line begins with it; the rest would leave the page. It
also looks at all parts of such a word again for each of them, so that time grows with their square.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

LONG_WORD: Final = 2_000
# Letters of a word of several elements that surely fit on a line; cells are narrow.
LONG_RUN: Final = 40
LONG_RUN_IN_TABLE: Final = 8
_PIECE: Final = 8

_TAG: Final = re.compile(r"(<[^>]*>)")
_INLINE: Final = re.compile(r"</?(?:a|code|del|em|span|strong)\b")
_TABLE: Final = re.compile(r"<(/?)table\b")
# A line may be broken between these and nearly everything else.
_OPPORTUNITY: Final = re.compile(r"[ \t\n\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]")
_LETTER: Final = r"(?:&#?\w+;|[^\s<>&\u2e80-\uffff])"
_LONG_WORD: Final = re.compile(rf"{_LETTER}{{{LONG_WORD},}}")
_LETTERS: Final = re.compile(rf"{_LETTER}{{1,24}}")


def breakable(markup: str) -> str:
    """Return *markup*, a whole document, with places to break in words that need them."""
    # Tags stand between texts.
    parts = _TAG.split(markup)
    for word in _long_words(parts):
        for index in _breaks(word):
            tag = parts[index]
            parts[index] = f"{tag}<wbr>" if tag.startswith("</") else f"<wbr>{tag}"
    if len(markup) >= LONG_WORD:
        # Without any, each line of such a word costs as much time as the whole of it.
        parts[::2] = [_LONG_WORD.sub(_broken, text) for text in parts[::2]]
    return "".join(parts)


def _broken(word: re.Match[str]) -> str:
    return "<wbr>".join(_LETTERS.findall(word[0]))


def _breaks(word: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the tags of a word at which it may be broken: few between short pieces, all at long ones."""
    last, end = 0, word[-1][1]
    for (index, before), (_, after) in pairwise(word):
        if 0 < before < end and (before - last >= _PIECE or after - before >= _PIECE):
            last = before
            yield index


def _long_words(parts: list[str]) -> Iterator[list[tuple[int, int]]]:
    """Yield the tags of each long word of several elements.

    For each tag, and the end: where it is in *parts*, and how many letters of the word stand before it.
    """
    tags: list[tuple[int, int]] = []
    letters, most = 0, LONG_RUN
    for index, part in enumerate(parts):
        left = 0
        if index % 2:
            if _INLINE.match(part):
                tags.append((index, letters))
                continue
        elif first := _OPPORTUNITY.search(part):
            letters += first.start()
            left = _letters_at_the_end(part)
        else:
            letters += len(part)
            continue
        if tags and letters > most:
            yield [*tags, (-1, letters)]
        tags, letters = [], left
        if table := _TABLE.match(part):
            most = LONG_RUN if table[1] else LONG_RUN_IN_TABLE
    if tags and letters > most:
        yield [*tags, (-1, letters)]


def _letters_at_the_end(text: str) -> int:
    """Return how many letters follow the last place where *text* can be broken."""
    for count, letter in enumerate(reversed(text)):
        if _OPPORTUNITY.match(letter):
            return count
    return len(text)
