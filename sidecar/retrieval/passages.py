"""Finds the passages of a recording in the blocks of the note that was made from it.

The texts are compared by their letters and digits alone, so that neither layout nor an edit
elsewhere in the note hides where a block stands in the recording.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.vault.schemas import TranscriptPassage


@dataclass(frozen=True, slots=True)
class AudioSpan:
    """Where a block stands in a recording, in seconds; no speaker if it has several."""

    start_time: float
    end_time: float
    speaker: str | None


def find_spans(
    texts: Sequence[str], passages: Sequence[TranscriptPassage]
) -> list[AudioSpan | None]:
    """Return for each of *texts*, in their order, where it stands in the recording."""
    letters = [_letters(text) for text in texts]
    starts, position = [], 0
    for part in letters:
        starts.append(position)
        position += len(part)
    whole = "".join(letters)
    found: list[list[TranscriptPassage]] = [[] for _ in texts]
    for passage, (start, end) in _places(whole, passages):
        number = bisect_right(starts, start) - 1
        while number < len(texts) and starts[number] < end:
            if letters[number] and passage not in found[number]:
                found[number].append(passage)
            number += 1
    return [_span(group) for group in found]


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _places(
    whole: str, passages: Sequence[TranscriptPassage]
) -> list[tuple[TranscriptPassage, tuple[int, int]]]:
    """Return the passages that were found, with their ranges.

    Passages whose text occurs once are found first. The others ("yes") are looked for only between
    those, so that one that was edited away isn't found far from where it was.
    """
    keys = [_letters(passage.text) for passage in passages]
    often = Counter(keys)
    anchors: dict[int, int] = {}
    reached = 0
    for number, key in enumerate(keys):
        if key and often[key] == 1 and whole.count(key) == 1:
            start = whole.find(key)
            if start >= reached:
                anchors[number] = start
                reached = start + len(key)
    places = []
    position = 0
    for number, key in enumerate(keys):
        if not key:
            continue
        start = anchors.get(number, -1)
        if start < 0:
            limit = next((anchors[later] for later in _later(anchors, number)), len(whole))
            start = whole.find(key, position, limit)
        if start >= 0:
            position = start + len(key)
            places.append((passages[number], (start, position)))
    return places


def _later(anchors: dict[int, int], number: int) -> list[int]:
    numbers = list(anchors)
    index = bisect_right(numbers, number)
    return numbers[index : index + 1]


def _span(passages: Sequence[TranscriptPassage]) -> AudioSpan | None:
    if not passages:
        return None
    speakers = {passage.speaker for passage in passages}
    return AudioSpan(
        min(passage.start_time for passage in passages),
        max(passage.end_time for passage in passages),
        speakers.pop() if len(speakers) == 1 else None,
    )
