"""Words: how text is written into the full text index, and how a person's query is read.

The index splits at everything but letters and digits. Chinese, Japanese and Korean have no blanks
between words, so each of their characters is a word of its own, and a phrase of them is found
wherever it stands. What a person types is text and never an expression.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sidecar.kernel.late_patterns import late_pattern

FORMAT: Final = 1
"""Goes up when the same text is written into the index in another way."""

CJK: Final = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
# Marks between the characters are no words; they only make the runs longer, and splitting faster.
_CJK_RUNS: Final = late_pattern(f"([{CJK}\u3001-\u3004\u3008-\u3020\uff01-\uff0f\uff1a-\uff20]+)")
_HAS_CJK: Final = late_pattern(f"[{CJK}]")
_CJK_RUN: Final = late_pattern(f"[{CJK}]+")
_BETWEEN_CJK: Final = late_pattern(f"(?<=[{CJK}]) +(?=[{CJK}])")
# Names that would lose what tells them from other words.
_PLUS: Final = re.compile(r"(?<=[A-Za-z])\+\+")
_SHARP: Final = re.compile(r"\b([A-Za-z])#(?!\w)")
_EMOJI_RANGES: Final = "\u2600-\u27bf\U0001f000-\U0001faff"
_EMOJI: Final = late_pattern(f"[{_EMOJI_RANGES}]")
# Letters and digits in another shape: wide, circled, raised, ligatures, compatibility characters, and
# marks that stand apart. To look for them first takes a tenth of the time of normalising every text.
_COMPATIBLE_RANGES: Final = (
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u0300-\u036f\u1100-\u11ff\u1d2c-\u1dbf\u2070-\u209f\u2100-\u218f"
    "\u2460-\u24ff\u2e80-\u2fdf\u3099-\u309a\u3130-\u318f\u3200-\u33ff\uf900-\ufaff\ufb00-\ufb4f"
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff65-\uffdc\U0001d400-\U0001d7ff\U0001f100-\U0001f16f"
)
_COMPATIBLE: Final = late_pattern(f"[{_COMPATIBLE_RANGES}]")
# Most texts hold neither, and are gone through once.
_COMPATIBLE_OR_EMOJI: Final = late_pattern(f"[{_COMPATIBLE_RANGES}{_EMOJI_RANGES}]")
# A query is cut where a sentence is; what stands between is a phrase.
_QUERY_BREAK: Final = re.compile(r"[\s,;!?\"'“”‘’，。；：？！、（）()《》「」【】<>|…]+")
_WORD: Final = re.compile(r"[^\W_]+")

MAX_TERMS: Final = 24
MAX_LOOSE: Final = 24
PREFIX_CHARS: Final = 3

_STOP_WORDS: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "shall",
        "should",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "about",
    ]
)
# Characters that carry grammar; two of them together say nothing about what is looked for.
_STOP_CHARACTERS: Final = frozenset(
    "的了是在和与或吗呢吧啊么什怎样为何哪些个这那有没不会能可以被把对从到中上下请问如及其之而也都就还要我你他它们一"
)


def searchable(text: str) -> str:
    """Return *text* as it is written into the full text index."""
    if "++" in text:
        text = _PLUS.sub("plusplus ", text)
    if "#" in text:
        text = _SHARP.sub(r"\1sharp ", text)
    if text.isascii():
        return text
    if _COMPATIBLE_OR_EMOJI.search(text):
        if _COMPATIBLE.search(text):
            text = unicodedata.normalize("NFKC", text)
        text = _EMOJI.sub(lambda match: f" emoji{ord(match[0]):x} ", text)
    parts = _CJK_RUNS.split(text)
    parts[1::2] = map(" ".join, parts[1::2])
    return " ".join(parts).strip()


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A query as expressions of the full text index."""

    exact: str | None
    """All the words; None where there is nothing that can be looked for."""
    prefix: str | None
    """The same, with the last word as the beginning of one that is still being typed."""
    loose: tuple[str, ...]
    """The words, and pairs of Chinese characters, that say something by themselves."""
    words: tuple[str, ...]
    """What to show in a snippet, in lower case."""


def read_query(query: str) -> TextQuery:
    """Read what a person typed."""
    terms: list[str] = []
    for chunk in _QUERY_BREAK.split(query):
        written = searchable(chunk)
        if written not in terms and any(character.isalnum() for character in written):
            terms.append(written)
    terms = terms[:MAX_TERMS]
    if not terms:
        return TextQuery(None, None, (), ())
    phrases = [_phrase(term) for term in terms]
    exact = " AND ".join(phrases)
    prefix = None
    last = terms[-1].split()[-1]
    if len(last) >= PREFIX_CHARS and last.isalnum() and not _HAS_CJK.search(last):
        prefix = " AND ".join((*phrases[:-1], f"({phrases[-1]} OR {phrases[-1]} *)"))
    loose = dict.fromkeys(part for term in terms for part in _loose_parts(term))
    return TextQuery(
        exact,
        prefix,
        tuple(loose)[:MAX_LOOSE] if tuple(loose) != (exact,) else (),
        tuple(_BETWEEN_CJK.sub("", term).lower() for term in terms),
    )


def _phrase(written: str) -> str:
    return '"' + written.replace('"', " ").replace("\0", " ").strip() + '"'


def _loose_parts(written: str) -> Iterator[str]:
    """Yield the words and pairs of characters of a term, as phrases."""
    compact = _BETWEEN_CJK.sub("", written)
    for run in _CJK_RUN.findall(compact):
        yield from _pairs(run)
    for word in _WORD.findall(_CJK_RUN.sub(" ", compact)):
        if word.lower() not in _STOP_WORDS:
            yield _phrase(word)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        if run not in _STOP_CHARACTERS:
            yield _phrase(run)
        return
    for first, second in pairwise(run):
        if first in _STOP_CHARACTERS or second in _STOP_CHARACTERS:
            continue
        yield _phrase(f"{first} {second}")
