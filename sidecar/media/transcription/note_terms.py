"""The words of the user's own notes that a recogniser may listen for: titles, headings and tags."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from sidecar.kernel.late_patterns import late_pattern
from sidecar.media.cjk import CJK

MOST_TERMS: Final = 2000
# A term that stands in so many of the notes says nothing, unless there are only a few notes.
COMMON_SHARE: Final = 0.1
FEW_NOTES: Final = 20

_CJK_RUN: Final = late_pattern(f"[{CJK}]+")
_LATIN_RUN: Final = re.compile(r"[^\W\d_][\w.+#'’-]*(?: [^\W\d_][\w.+#'’-]*)*")
# Words that tie two terms together in a title.
_TYING: Final = "的和与及或之是在"
_TIES: Final = re.compile(f"[{_TYING}]")
_NUMBERING: Final = re.compile(
    "^(?:第[一二三四五六七八九十百零〇0-9]+[章节讲课篇部回]|[一二三四五六七八九十]+)"
)
_CJK_LENGTHS: Final = range(2, 13)
_LATIN_WORD: Final = 4
_LATIN_LONGEST: Final = 40
_LATIN_WORDS: Final = 3


class NoteNames(Protocol):
    """What is needed of the notes."""

    async def names(self, vault_id: str) -> Sequence[Sequence[str]]:
        """Return title, headings and tags of each note of a vault, newest note first."""
        ...


class NoteTerms:
    """Terms out of a vault."""

    def __init__(self, notes: NoteNames) -> None:
        self._notes = notes

    async def of_vault(self, vault_id: str) -> tuple[str, ...]:
        """Return the terms of a vault, the rarest first."""
        names = await self._notes.names(vault_id)
        return await asyncio.to_thread(rarest_terms, names)


def rarest_terms(notes: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the terms in the names of each note, those first that fewest notes have."""
    holders: Counter[str] = Counter()
    count = 0
    for names in notes:
        count += 1
        # A dict and no set: of equally rare terms those of the newest note come first.
        holders.update(list(dict.fromkeys(term for name in names for term in terms_in(name))))
    most = max(count * COMMON_SHARE, 1) if count > FEW_NOTES else count
    spelled: dict[str, str] = {}
    for term, notes_with_it in sorted(holders.items(), key=lambda found: found[1]):
        if notes_with_it <= most:
            spelled.setdefault(term.casefold(), term)
    return tuple(spelled.values())[:MOST_TERMS]


def terms_in(name: str) -> Iterator[str]:
    """Yield the terms of a title, a heading or a tag: the whole of it, and its parts."""
    for run in _CJK_RUN.findall(name):
        whole = _NUMBERING.sub("", run).strip(_TYING)
        parts = [whole, *_TIES.split(whole)]
        yield from (part for part in parts if len(part) in _CJK_LENGTHS)
    for run in _LATIN_RUN.findall(_CJK_RUN.sub("|", name)):
        words = [word.strip(".'’-") for word in run.split()]
        if 1 < len(words) <= _LATIN_WORDS and len(run) <= _LATIN_LONGEST:
            yield " ".join(words)
        yield from (word for word in words if _LATIN_WORD <= len(word) <= _LATIN_LONGEST)
