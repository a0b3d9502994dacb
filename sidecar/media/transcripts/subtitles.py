"""Transcripts as subtitles: cues that can be read in their time, in lines that break where they may."""

import html
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.media.attachments.recording_title import recording_title
from sidecar.media.attachments.service import AttachmentService
from sidecar.media.cjk import is_cjk
from sidecar.media.schemas import SubtitleFormat
from sidecar.media.transcription.segments import Segment
from sidecar.media.transcripts.revisions import RevisionService, named_segments

MEDIA_TYPES: Final[dict[SubtitleFormat, str]] = {
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}

# Columns; a Chinese character takes two. What broadcasters allow in Latin and in Chinese script.
LINE_COLUMNS: Final = 42
CUE_LINES: Final = 2
CUE_SECONDS: Final = 7.0
SHORTEST_CUE: Final = 0.1
# A line doesn't begin with these, nor end with those.
_CLOSING: Final = frozenset("，。、！？；：）】》」』”’…—,.!?;:)]}%")
_OPENING: Final = frozenset("（【《「『“‘([{")
_SENTENCE_ENDS: Final = frozenset("。！？；…!?;.")
_PAUSES: Final = frozenset("，、：,:")


@dataclass(frozen=True, slots=True)
class Cue:
    """What is shown from ``start`` to ``end`` (seconds)."""

    start: float
    end: float
    speaker: str | None
    lines: tuple[str, ...]


def columns(text: str) -> int:
    """Return how wide a text is, in columns of a Latin letter."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def cues_of(segments: Sequence[Segment], *, speakers: bool = True) -> list[Cue]:
    """Return the cues of segments whose speakers have their names already."""
    cues: list[Cue] = []
    for segment in segments:
        text = " ".join(segment["text"].split())
        if not text:
            continue
        speaker = segment["speaker"] if speakers else None
        for piece, start, end in _timed(text, segment):
            earliest = cues[-1].end if cues else 0.0
            begin = max(start, earliest)
            cues.append(Cue(begin, max(end, begin + SHORTEST_CUE), speaker, tuple(lines_of(piece))))
    return cues


def _timed(text: str, segment: Segment) -> Iterator[tuple[str, float, float]]:
    """Yield the pieces of a text that fit a cue, with their times."""
    start, end = segment["start_time"], segment["end_time"]
    # The fewest pieces that are neither too long to show nor too long on show.
    room = LINE_COLUMNS * CUE_LINES
    count = max(
        -(-columns(text) // room), -(-int(1000 * (end - start)) // int(1000 * CUE_SECONDS)), 1
    )
    pieces = _cut(text, count, room)
    spoken = sum(map(len, pieces))
    place = 0
    times = _word_times(text, segment)
    moment = start
    for number, piece in enumerate(pieces, 1):
        place += len(piece)
        shown = start + (end - start) * place / spoken
        after = end if number == len(pieces) else _time_at(times, text, pieces[:number], shown)
        yield piece, moment, after
        moment = after


def _cut(text: str, count: int, room: int) -> list[str]:
    """Cut *text* into about *count* pieces of nearly the same width, at sentences if there are some."""
    pieces: list[str] = []
    rest = text
    while rest:
        left = max(count - len(pieces), 1)
        ideal = min(columns(rest) / left, room)
        place = len(rest) if columns(rest) <= min(ideal, room) else _best_break(rest, ideal, room)
        pieces.append(rest[:place].strip())
        rest = rest[place:].strip()
    return pieces


def _best_break(text: str, ideal: float, most: int) -> int:
    """Return where to cut: near the *ideal* width, rather after a sentence than elsewhere."""
    best, best_cost = 0, float("inf")
    width = 0
    for place, letter in enumerate(text, 1):
        width += columns(letter)
        if width > most:
            break
        if not _may_break(text, place):
            continue
        cost = abs(width - ideal)
        mark = text[:place].rstrip()[-1:]
        cost -= 16 if mark in _SENTENCE_ENDS else 12 if mark in _PAUSES else 0
        if cost < best_cost:
            best, best_cost = place, cost
    return best or _fitting(text, most)


def _fitting(text: str, most: int) -> int:
    """Return how many characters of a word without a break fit."""
    width = 0
    for place, letter in enumerate(text):
        width += columns(letter)
        if width > most:
            return max(place, 1)
    return len(text)


def _may_break(text: str, place: int) -> bool:
    """Whether a line may end before the character at *place*."""
    if place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if before in _OPENING or after in _CLOSING or after == " ":
        return False
    return (
        before == " "
        or is_cjk(before)
        or is_cjk(after)
        or (before in _CLOSING and columns(before) == 2)
    )


def lines_of(text: str) -> list[str]:
    """Return the lines of a cue: one if it fits, else of nearly the same width."""
    lines: list[str] = []
    rest = text
    while rest:
        width = columns(rest)
        if width <= LINE_COLUMNS:
            return [*lines, rest]
        count = -(-width // LINE_COLUMNS)
        place = _best_break(rest, width / count, LINE_COLUMNS)
        lines.append(rest[:place].strip())
        rest = rest[place:].strip()
    return lines


def _word_times(text: str, segment: Segment) -> list[tuple[int, float]]:
    """Return the place behind each word in the text and when the next one begins."""
    places: list[tuple[int, float]] = []
    place = 0
    words = segment["words"]
    for number, word in enumerate(words[:-1]):
        found = text.find(word["text"], place)
        if found < 0:
            return []
        place = found + len(word["text"])
        places.append((place, words[number + 1]["start_time"]))
    return places


def _time_at(
    times: Sequence[tuple[int, float]], text: str, pieces: Sequence[str], otherwise: float
) -> float:
    """Return when what follows the *pieces* is said; *otherwise* if no word begins there."""
    place = 0
    for piece in pieces:
        place = text.find(piece, place) + len(piece)
    return next((moment for end, moment in times if end >= place), otherwise)


# -- writing -----------------------------------------------------------------------------------


def srt(cues: Sequence[Cue]) -> str:
    """Return the cues as SubRip text; a speaker's name stands before the first of his cues."""
    blocks = []
    speaker: str | None = None
    for number, cue in enumerate(cues, 1):
        lines = list(cue.lines)
        if cue.speaker and cue.speaker != speaker:
            lines[0] = f"{_one_line(cue.speaker)}: {lines[0]}"
        speaker = cue.speaker
        # The arrow is the one thing that SubRip has no way to escape.
        shown = "\n".join(lines).replace("-->", "→")
        blocks.append(f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{shown}\n")
    return "\n".join(blocks)


def vtt(cues: Sequence[Cue]) -> str:
    """Return the cues as WebVTT; the speaker is the voice of each cue."""
    blocks = ["WEBVTT\n"]
    for cue in cues:
        shown = "\n".join(html.escape(line, quote=False) for line in cue.lines)
        if cue.speaker:
            shown = f"<v {html.escape(_one_line(cue.speaker), quote=False)}>{shown}"
        blocks.append(f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{shown}\n")
    return "\n".join(blocks)


def written(cues: Sequence[Cue], subtitle_format: SubtitleFormat) -> str:
    """Return the cues in a format."""
    return srt(cues) if subtitle_format == "srt" else vtt(cues)


def _one_line(name: str) -> str:
    return " ".join(name.split())


def _clock(seconds: float, point: str) -> str:
    milliseconds = round(1000 * seconds)
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{point}{rest % 1000:03}"


@dataclass(frozen=True, slots=True)
class SubtitleFile:
    """Subtitles as they are sent."""

    file_name: str
    media_type: str
    content: str


class TranscriptSubtitles:
    """Makes subtitles of transcripts."""

    def __init__(self, revisions: RevisionService, attachments: AttachmentService) -> None:
        self._revisions = revisions
        self._attachments = attachments

    async def write(
        self, job_id: str, subtitle_format: SubtitleFormat, *, revision: int | None, speakers: bool
    ) -> SubtitleFile:
        """Return the subtitles of a revision, by default the current one.

        Raises ``RESOURCE_NOT_FOUND`` for an unknown job or revision, or ``TRANSCRIPT_NOT_READY``.
        """
        job, found = await self._revisions.stored(job_id, revision)
        cues = cues_of(named_segments(found), speakers=speakers)
        title = await recording_title(self._attachments, job.request["attachment_id"])
        return SubtitleFile(
            f"{title}.{subtitle_format}",
            MEDIA_TYPES[subtitle_format],
            written(cues, subtitle_format),
        )
