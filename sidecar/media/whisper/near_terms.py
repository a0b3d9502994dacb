"""Finds terms that a text nearly holds: what a recogniser made of a word that it didn't know.

Chinese, Japanese and Korean are compared by characters: a misheard term shares most of them. Other
scripts are compared by the consonants of whole words, since a misheard name is spelled by its sound.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from sidecar.media.cjk import is_cjk

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# Letters that sound alike have one digit; vowels, h, w and y have none.
_SOUNDS: Final = str.maketrans("bfpvcgjkqsxzdtlmnr", "111122222222334556")
_SHORTEST_SOUND: Final = 4
_MOST_WORDS: Final = 4
# How much of a term may be misheard.
_CJK_SHARE: Final = 0.4
_SOUND_SHARE: Final = 0.17
_SPELLING_SHARE: Final = 0.6
# Of a term that is misheard by half, what is left must be shared with few other terms.
LEAST_TELLING: Final = 0.3


def letters(text: str) -> str:
    """Return what is compared of a text: letters and digits in lower case."""
    return "".join(character for character in text.casefold() if character.isalnum())


def sound(text: str) -> str:
    """Return the consonants of a text as digits, where those that sound alike are the same."""
    digits = "".join(
        digit for digit in letters(text).translate(_SOUNDS) if digit.isdigit() and digit in "123456"
    )
    return digits[:1] + "".join(after for before, after in pairwise(digits) if before != after)


def edits(term: str, text: str, *, anywhere: bool) -> int:
    """Return how many characters must change to make *term* of *text*, or of any part of it."""
    row = [0] * (len(text) + 1) if anywhere else list(range(len(text) + 1))
    for number, expected in enumerate(term, 1):
        after = [number]
        for index, found in enumerate(text, 1):
            after.append(min(row[index] + 1, after[-1] + 1, row[index - 1] + (expected != found)))
        row = after
    return min(row) if anywhere else row[-1]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A part of a text, from ``start`` to ``end``, and what ought to stand there."""

    start: int
    end: int
    text: str


class NearTerms:
    """Terms, the rarest first, and which of them a text nearly holds."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._terms = tuple(dict.fromkeys(terms))
        self._cjk = [(term, letters(term)) for term in self._terms if is_cjk(term)]
        self._words = [
            (term, letters(term), sound(term)) for term in self._terms if not is_cjk(term)
        ]
        self._holders = Counter(
            character for _, compared in self._cjk for character in set(compared)
        )

    def within(self, terms: Iterable[str]) -> list[str]:
        """Return *terms*, and all others that are parts of them."""
        wholes = list(terms)
        parts = (term for term in self._terms if any(term in whole for whole in wholes))
        return list(dict.fromkeys([*wholes, *parts]))

    def in_text(self, text: str) -> list[str]:
        """Return the terms that *text* holds with a mistake, the nearest first."""
        compared = letters(text)
        ranked = [*self._near_cjk(compared), *self._near_words(text, compared)]
        return [term for *_, term in sorted(ranked)]

    def _near_cjk(self, text: str) -> Iterable[tuple[float, float, int, str]]:
        there = set(text)
        for rank, (term, compared) in enumerate(self._cjk):
            allowed = _allowed(compared)
            known = [character for character in compared if character in there]
            if len(known) < len(compared) - allowed or compared in text:
                continue
            mistakes = edits(compared, text, anywhere=True)
            # One that shares only characters of many terms is near by chance.
            telling = sum(1 / self._holders[character] for character in known)
            is_clear = 3 * mistakes <= len(compared) or telling >= LEAST_TELLING
            if mistakes <= allowed and is_clear:
                yield mistakes / len(compared), -telling, rank, term

    def _near_words(self, text: str, compared: str) -> Iterable[tuple[float, float, int, str]]:
        if not self._words:
            return
        runs = {(letters(run), sound(run)) for run in _runs(_WORD.findall(text))}
        for rank, (term, spelled, sounded) in enumerate(self._words):
            if len(sounded) < _SHORTEST_SOUND or spelled in compared:
                continue
            allowed = int(_SOUND_SHARE * len(sounded))
            if any(
                heard[:1] == sounded[:1]
                and abs(len(heard) - len(sounded)) <= allowed
                and edits(sounded, heard, anywhere=False) <= allowed
                # Words that are spelled quite differently have the same consonants by chance.
                and edits(spelled, written, anywhere=False) <= _SPELLING_SHARE * len(spelled)
                for written, heard in runs
            ):
                yield 0.0, -len(sounded), rank, term


def _allowed(compared: str) -> int:
    return max(1, int(_CJK_SHARE * len(compared)))


def _runs(words: Sequence[str]) -> Iterable[str]:
    for first in range(len(words)):
        for count in range(1, _MOST_WORDS + 1):
            if first + count <= len(words):
                yield "".join(words[first : first + count])


def replacements(old: str, new: str, terms: Iterable[str]) -> list[Replacement]:
    """Return where *old* is to be changed to what *new* says there, because that is nearer to a term.

    *new* says the same as *old*, heard again with the *terms* in mind. All else of *old* is kept. Where
    a term was near once, it is believed in other places too, whatever was heard there before.
    """
    kept: list[Replacement] = []
    believed: set[str] = set()
    matcher = SequenceMatcher(None, old.casefold(), new.casefold(), autojunk=False)
    codes = matcher.get_opcodes()
    ranked = sorted(terms, key=len, reverse=True)
    for again in (False, True):
        for term in ranked:
            for found_start, found_end in _occurrences(term, new):
                start, end = _without_marks(old, *_aligned(codes, found_start, found_end))
                before, after = old[start:end], new[found_start:found_end]
                if any(start < other.end and other.start < end for other in kept):
                    continue
                if again:
                    better = term in believed and after != before and len(after) == len(before)
                else:
                    better = _is_better(term, before, after)
                if better:
                    kept.append(Replacement(start, end, after))
                    believed |= {other for other in ranked if other in after}
    return sorted(kept, key=lambda replacement: replacement.start)


def _occurrences(term: str, text: str) -> list[tuple[int, int]]:
    """Return where *text* has the term; where it comes nearest to it if it hasn't got it."""
    exact = [match.span() for match in re.finditer(re.escape(term), text, re.IGNORECASE)]
    if exact or not is_cjk(term):
        return exact
    expected, compared = term.casefold(), text.casefold()
    # (mistakes, start) of the best match that ends at each place.
    row = [(0, index) for index in range(len(compared) + 1)]
    for number, character in enumerate(expected, 1):
        after = [(number, 0)]
        for index, found in enumerate(compared, 1):
            mistakes, start = row[index - 1]
            changed = (mistakes + (character != found), start)
            missing = (row[index][0] + 1, row[index][1])
            added = (after[-1][0] + 1, after[-1][1])
            after.append(min(changed, missing, added, key=lambda match: match[0]))
        row = after
    end = min(range(len(row)), key=lambda index: row[index][0])
    return [(row[end][1], end)] if row[end][0] <= _allowed(expected) else []


def _aligned(
    codes: Sequence[tuple[str, int, int, int, int]], start: int, end: int
) -> tuple[int, int]:
    """Return the part of the old text that the part *start* to *end* of the new one stands for."""
    begins, ends = [], []
    for tag, old_start, old_end, new_start, new_end in codes:
        if new_end <= start or new_start >= end:
            continue
        if tag == "equal" or old_end - old_start == new_end - new_start:
            begins.append(old_start + max(0, start - new_start))
            ends.append(old_end - max(0, new_end - end))
        else:
            begins.append(old_start)
            ends.append(old_end)
    return (min(begins), max(ends)) if begins else (0, 0)


def _without_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out the punctuation at both ends of a part of a text."""
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    return start, end


def _is_better(term: str, old: str, new: str) -> bool:
    """Whether *old* could be a mishearing of the term, and *new* comes nearer to it."""
    if not old or old.casefold() == new.casefold():
        return False
    if is_cjk(term):
        before = edits(letters(term), letters(old), anywhere=False)
        after = edits(letters(term), letters(new), anywhere=False)
        return after < before <= _allowed(letters(term))
    heard, meant = sound(old), sound(term)
    return edits(meant, heard, anywhere=False) <= int(_SOUND_SHARE * len(meant))
