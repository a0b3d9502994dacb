"""Segments of a transcript: from what the recogniser says to what is kept and shown."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sidecar.media.cjk import run_on

Segment = dict[str, Any]

# The recogniser writes Mandarin with ASCII punctuation.
_FULL_WIDTH: Final = {",": "，", "?": "？", "!": "！", ":": "：", ";": "；"}
_AFTER_HAN: Final = re.compile(r"(?<=[\u4e00-\u9fff])([,?!:;])\s*")


def segments_of(
    raw: Iterable[Mapping[str, Any]], duration: float, language: str | None
) -> list[Segment]:
    """Return the recogniser's segments in the form in which they are kept.

    Times rise, don't overlap and lie within the *duration* (seconds); empty segments are left out.
    ``speaker``, ``log_probability`` and ``words`` may be missing: a provider doesn't tell them.
    """
    kept: list[Segment] = []
    earliest = 0.0
    for segment in sorted(raw, key=lambda found: found["start"]):
        text = _tidy(segment["text"], language)
        if not text:
            continue
        start = _within(segment["start"], earliest, duration)
        end = _within(segment["end"], start, duration)
        kept.append(
            {
                "segment_id": f"segment_{len(kept) + 1:04d}",
                "speaker": segment.get("speaker"),
                "start_time": start,
                "end_time": end,
                "text": text,
                "confidence": _confidence(segment.get("log_probability")),
                "words": _words(segment.get("words", ()), start, end, language),
            }
        )
        earliest = end
    return kept


def _words(
    raw: Iterable[Mapping[str, Any]], start: float, end: float, language: str | None
) -> list[Segment]:
    kept: list[Segment] = []
    earliest = start
    for word in raw:
        text = _tidy(word["text"], language)
        if not text:
            continue
        word_start = _within(word["start"], earliest, end)
        word_end = _within(word["end"], word_start, end)
        kept.append(
            {
                "text": text,
                "start_time": word_start,
                "end_time": word_end,
                "confidence": _probability(word["probability"]),
            }
        )
        earliest = word_end
    return kept


def transcript_text(segments: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of *segments* in order."""
    return run_on(segment["text"] for segment in segments)


def _tidy(text: str, language: str | None) -> str:
    # No text file can hold a NUL, which a provider's answer can.
    text = " ".join(text.replace("\0", " ").split())
    if language == "zh":
        text = _AFTER_HAN.sub(lambda match: _FULL_WIDTH[match[1]], text)
    return text


def _within(seconds: float, lowest: float, highest: float) -> float:
    return round(min(max(seconds, lowest), max(lowest, highest)), 3)


def _confidence(log_probability: float | None) -> float | None:
    return None if log_probability is None else _probability(math.exp(log_probability))


def _probability(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), 4)
