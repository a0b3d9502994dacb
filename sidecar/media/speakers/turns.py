"""Who said what: joins the turns of speakers with the recogniser's segments and words."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from sidecar.media.transcription.segments import Segment

# Speech that lies in no turn belongs to the nearest one, if that is no farther than this.
NEAREST_SECONDS: Final = 1.0
# Times of words and of turns are right within this; a change of speaker belongs to the end of a sentence near it.
NEAR_SENTENCE_WORDS: Final = 2
NEAR_SENTENCE_SECONDS: Final = 0.6
_SENTENCE_ENDS: Final = (".", "?", "!", "。", "？", "！", "…")


@dataclass(frozen=True, slots=True)
class Turn:
    """One speaker talks from *start* to *end*, in seconds."""

    start: float
    end: float
    speaker: str


class Turns:
    """The turns of a recording. Several people may talk at once."""

    def __init__(self, turns: Iterable[Turn], alone: Iterable[Turn] = ()) -> None:
        """*alone* are turns that don't overlap: they decide between people who talk equally much."""
        self._turns = _Sorted(turns)
        self._alone = _Sorted(alone)

    def __len__(self) -> int:
        return len(self._turns.turns)

    @property
    def speakers(self) -> set[str]:
        """The labels of everybody who talks."""
        return {turn.speaker for turn in self._turns.turns}

    def speaker_of(self, start: float, end: float) -> str | None:
        """Return who talks most from *start* to *end*; else who talks nearest, or None."""
        shares = self._turns.shares(start, end)
        if shares:
            alone = self._alone.shares(start, end)
            return max(shares, key=lambda who: (round(shares[who], 2), alone.get(who, 0.0)))
        near = [
            (max(turn.start - end, start - turn.end), turn.speaker)
            for turn in self._turns.between(start - NEAREST_SECONDS, end + NEAREST_SECONDS)
        ]
        return min(near, default=(0.0, None))[1]


class _Sorted:
    """Turns by their start."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.turns = sorted(turns, key=lambda turn: turn.start)
        self._starts = [turn.start for turn in self.turns]
        self._longest = max((turn.end - turn.start for turn in self.turns), default=0.0)

    def between(self, start: float, end: float) -> list[Turn]:
        """Return the turns that are going on at some moment from *start* to *end*."""
        first = bisect_left(self._starts, start - self._longest)
        last = bisect_right(self._starts, end)
        return [turn for turn in self.turns[first:last] if turn.end >= start]

    def shares(self, start: float, end: float) -> dict[str, float]:
        """Return how long each speaker talks from *start* to *end*."""
        found: dict[str, float] = {}
        for turn in self.between(start, end):
            share = min(end, turn.end) - max(start, turn.start)
            if share > 0:
                found[turn.speaker] = found.get(turn.speaker, 0.0) + share
        return found


def with_speakers(segments: Iterable[Mapping[str, Any]], turns: Turns) -> list[dict[str, Any]]:
    """Return the recogniser's segments with their ``speaker``; one with several is cut at the words.

    Labels are SPEAKER_00, SPEAKER_01 … in the order in which they appear.
    """
    parts = [part for segment in segments for part in _parts(segment, turns)]
    labels: dict[str, str] = {}
    for part in sorted(parts, key=lambda part: part["start"]):
        speaker = part["speaker"]
        if speaker is not None:
            labels.setdefault(speaker, f"SPEAKER_{len(labels):02d}")
    return [part | {"speaker": labels.get(part["speaker"])} for part in parts]


def without_words(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments as they are shown to who didn't ask for words."""
    return [segment | {"words": []} for segment in segments]


def _parts(segment: Mapping[str, Any], turns: Turns) -> list[dict[str, Any]]:
    words: Sequence[Mapping[str, Any]] = segment.get("words") or ()
    speakers = _speakers_of(words, turns)
    if len(set(speakers)) < 2:
        known = next(iter(speakers), None)
        speaker = known or turns.speaker_of(segment["start"], segment["end"])
        return [dict(segment) | {"speaker": speaker}]
    parts = []
    for speaker, pairs in groupby(zip(speakers, words, strict=True), key=lambda pair: pair[0]):
        said = [word for _, word in pairs]
        parts.append(
            dict(segment)
            | {
                "speaker": speaker,
                "start": said[0]["start"],
                "end": said[-1]["end"],
                "text": "".join(word["text"] for word in said),
                "words": said,
            }
        )
    # The segment's own edges count for more than those of its outer words.
    parts[0]["start"] = min(segment["start"], parts[0]["start"])
    parts[-1]["end"] = max(segment["end"], parts[-1]["end"])
    return parts


def _speakers_of(words: Sequence[Mapping[str, Any]], turns: Turns) -> list[str | None]:
    speakers = [turns.speaker_of(word["start"], word["end"]) for word in words]
    for number in range(1, len(speakers)):
        speakers[number] = speakers[number] or speakers[number - 1]
    for number in reversed(range(len(speakers) - 1)):
        speakers[number] = speakers[number] or speakers[number + 1]
    return _changing_at_sentences(words, speakers)


def _changing_at_sentences(
    words: Sequence[Mapping[str, Any]], speakers: list[str | None]
) -> list[str | None]:
    """Move each change of speaker to the end of a sentence that is very near, if there is one."""
    moved = list(speakers)
    for number in range(1, len(words)):
        if speakers[number] == speakers[number - 1] or _ends_sentence(words[number - 1]):
            continue
        boundary = _sentence_near(words, number)
        if boundary is None:
            continue
        for between in range(min(number, boundary), max(number, boundary)):
            moved[between] = speakers[number] if boundary < number else speakers[number - 1]
    return moved


def _sentence_near(words: Sequence[Mapping[str, Any]], change: int) -> int | None:
    """Return the word nearest to the one numbered *change* that begins a sentence."""
    moment = words[change]["start"]
    for distance in range(1, NEAR_SENTENCE_WORDS + 1):
        for number in (change - distance, change + distance):
            if not 0 < number < len(words) or not _ends_sentence(words[number - 1]):
                continue
            if abs(words[number]["start"] - moment) <= NEAR_SENTENCE_SECONDS:
                return number
    return None


def _ends_sentence(word: Mapping[str, Any]) -> bool:
    return str(word["text"]).rstrip().endswith(_SENTENCE_ENDS)
