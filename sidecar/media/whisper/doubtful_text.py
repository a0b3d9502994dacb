"""Takes out what a recogniser invented, by its own measures."""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sidecar.media.whisper.near_terms import edits, letters

RawSegment = dict[str, Any]

# The recogniser's own thresholds: beyond them it tries again by itself, and then gives what it has.
MOST_COMPRESSION: Final = 2.4
LEAST_CERTAINTY: Final = -1.0
MOST_SILENCE: Final = 0.6
# The same sentence more often than this on end was not said so often.
MOST_REPEATS: Final = 2

REPEATED: Final = "REPEATED_TEXT_REMOVED"
INVENTED: Final = "UNCERTAIN_TEXT_REMOVED"

# An echo of what the recogniser was told has so much of it wrong at the most.
ECHO_SHARE: Final = 1 / 3

# A phrase that follows on itself at least three times.
_LOOP: Final = re.compile(
    r"(?P<phrase>\S(?:.{0,118}?\S)??)(?P<gap>[\s,，。.!！?？、]*)(?:(?P=phrase)[\s,，。.!！?？、]*){2,}"
)


@dataclass(frozen=True, slots=True)
class Believed:
    """The segments that are kept, and the codes of what was taken out."""

    segments: list[RawSegment]
    warnings: list[str]


def believed(segments: Iterable[RawSegment], told: str = "") -> Believed:
    """Return *segments* without invented sentences and endless repetitions.

    Segments are the recogniser's, with ``log_probability`` and ``no_speech``. *told* is a sentence that
    it was given and nobody said: where it hears nothing else, it says that.
    """
    kept: list[RawSegment] = []
    warnings: dict[str, None] = {}
    repeats = 0
    for segment in segments:
        text = segment["text"].strip()
        is_silence = (
            segment["no_speech"] > MOST_SILENCE and segment["log_probability"] < LEAST_CERTAINTY
        )
        # Marks without a word are what it makes of silence, too.
        if is_silence or not letters(text) or _is_echo(text, told):
            warnings[INVENTED] = None
            continue
        repeats = repeats + 1 if kept and text == kept[-1]["text"].strip() else 1
        if repeats > MOST_REPEATS:
            warnings[REPEATED] = None
            continue
        shortened = without_loops(segment)
        if shortened is not segment:
            warnings[REPEATED] = None
        kept.append(shortened)
    return Believed(kept, list(warnings))


def _is_echo(text: str, told: str) -> bool:
    expected = letters(told)
    wrong = edits(expected, letters(text), anywhere=False)
    return bool(expected) and wrong <= ECHO_SHARE * len(expected)


def compression(text: str) -> float:
    """Return how many times shorter a text becomes when it is packed: the recogniser's own measure."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0


def without_loops(segment: RawSegment) -> RawSegment:
    """Return a segment in which no phrase is said over and over; itself if there is none."""
    text = segment["text"]
    if compression(text) <= MOST_COMPRESSION:
        return segment
    match = _LOOP.search(text)
    if match is None:
        return segment
    first = match.end("gap")
    words, place = [], 0
    for word in segment["words"]:
        if place < first or place >= match.end():
            words.append(word)
        place += len(word["text"])
    return without_loops(segment | {"text": text[:first] + text[match.end() :], "words": words})
