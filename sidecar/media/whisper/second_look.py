"""Listens once more where the user's own terms were nearly heard.

All terms of a vault at once would mislead the recogniser, and its prompt has no room for them. So the
first transcript says which terms it nearly holds; those few are given as hotwords for that half minute
alone, and what then comes nearer to a term is taken over, and nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from sidecar.media.audio.decoding import SAMPLE_RATE
from sidecar.media.cjk import is_cjk
from sidecar.media.whisper.near_terms import NearTerms, Replacement, replacements

if TYPE_CHECKING:
    import numpy as np
    from faster_whisper.tokenizer import Tokenizer
    from numpy.typing import NDArray

    Again = Callable[[NDArray[np.float32], str], list[Any]]

# A window of the recogniser, less what is heard at both its ends.
LONGEST_WINDOW: Final = 28.0
LEAD_SECONDS: Final = 0.1
TAIL_SECONDS: Final = 0.2
# The recogniser's prompt has 448 places, which the text of half a minute shares.
HOTWORD_TOKENS: Final = 96
# Hotwords always cost the recogniser a little certainty; more than this says that they don't fit.
MOST_DOUBT: Final = 0.15


class SecondLook:
    """The terms that may be listened for in one recording, the rarest first."""

    def __init__(self, tokenizer: "Tokenizer", terms: Sequence[str], again: "Again") -> None:
        self._tokenizer = tokenizer
        # What the recogniser has a token of its own for is a common word, which it knows.
        self._terms = NearTerms([term for term in terms if self._token_count(term) > 1])
        self._again = again

    def _token_count(self, term: str) -> int:
        return len(self._tokenizer.encode(term if is_cjk(term) else f" {term}"))

    def at(self, samples: "NDArray[np.float32]", segments: Iterable[Any]) -> Iterator[Any]:
        """Yield the *segments* of *samples* with the terms in them put right."""
        window: list[Any] = []
        for segment in segments:
            if window and segment.end - window[0].start > LONGEST_WINDOW:
                yield from self._mended(samples, window)
                window = []
            window.append(segment)
        if window:
            yield from self._mended(samples, window)

    def _mended(self, samples: "NDArray[np.float32]", window: list[Any]) -> list[Any]:
        old = "".join(segment.text for segment in window)
        terms = self._fitting(self._terms.in_text(old))
        if not terms:
            return window
        start = max(0, int((window[0].start - LEAD_SECONDS) * SAMPLE_RATE))
        end = int((window[-1].end + TAIL_SECONDS) * SAMPLE_RATE)
        separator = "。" if is_cjk(old) else ", "
        heard = self._again(samples[start:end], separator.join(terms))
        if not heard or _certainty(heard) < _certainty(window) - MOST_DOUBT:
            return window
        new = "".join(segment.text for segment in heard)
        put_in(window, replacements(old, new, self._terms.within(terms)))
        return window

    def _fitting(self, terms: Sequence[str]) -> list[str]:
        kept: list[str] = []
        left = HOTWORD_TOKENS
        for term in terms:
            left -= self._token_count(term) + 1
            if left < 0:
                break
            kept.append(term)
        return kept


def _certainty(segments: Sequence[Any]) -> float:
    tokens = sum(len(segment.tokens) for segment in segments)
    total = sum(segment.avg_logprob * len(segment.tokens) for segment in segments)
    return total / tokens if tokens else 0.0


def put_in(segments: Sequence[Any], changes: Iterable[Replacement]) -> None:
    """Make *changes* of the text of all *segments* in them, and in their words."""
    offset = 0
    placed = []
    for segment in segments:
        placed.append((segment, offset, offset + len(segment.text)))
        offset += len(segment.text)
    for change in sorted(changes, key=lambda change: -change.start):
        for segment, start, end in placed:
            if start <= change.start and change.end <= end:
                _change(segment, change.start - start, change.end - start, change.text)


def _change(segment: Any, start: int, end: int, text: str) -> None:
    segment.text = segment.text[:start] + text + segment.text[end:]
    if not segment.words:
        return
    # The words that the change touches become one, from the first's beginning to the last's end.
    place, touched = 0, []
    for word in segment.words:
        if place < end and start < place + len(word.word):
            touched.append((place, word))
        place += len(word.word)
    if not touched:
        return
    (first_place, first), (last_place, last) = touched[0], touched[-1]
    before = first.word[: max(0, start - first_place)]
    after = last.word[end - last_place :]
    first.word = before + text + after
    first.end = last.end
    first.probability = min(word.probability for _, word in touched)
    dropped = {id(word) for _, word in touched[1:]}
    segment.words = [word for word in segment.words if id(word) not in dropped]
