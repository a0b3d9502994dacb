"""Applies a user's edits to the segments of a transcript."""

import re
from collections.abc import Sequence
from typing import Final

from sidecar.media.cjk import run_on
from sidecar.media.input_errors import invalid
from sidecar.media.schemas import RevisionEdit, SegmentEdit, SegmentMerge, SegmentSplit
from sidecar.media.transcription.segments import Segment

_CLOSING: Final = frozenset("，。、！？；：）】》」』”’…,.!?;:)]}")
LABEL: Final = re.compile(r"SPEAKER_\d{2}")


def edited_segments(
    segments: Sequence[Segment], edit: RevisionEdit, revision: int
) -> list[Segment]:
    """Return *segments* with texts and speakers changed, then split, then merged.

    *revision* is the number of the revision that this makes: a segment that is new gets its id from it.
    Raises ``VALIDATION_ERROR`` for what doesn't fit the segments.
    """
    changed = _with_changes(segments, edit.segments)
    changed = _split(changed, edit.splits, revision)
    return _merged(changed, edit.merges)


def _with_changes(segments: Sequence[Segment], edits: Sequence[SegmentEdit]) -> list[Segment]:
    wanted: dict[str, SegmentEdit] = {}
    known = {segment["segment_id"] for segment in segments}
    for index, edit in enumerate(edits):
        if edit.segment_id not in known or edit.segment_id in wanted:
            raise invalid(
                "No such segment, or named twice.", "body", "segments", index, "segment_id"
            )
        if edit.speaker is not None and not LABEL.fullmatch(edit.speaker):
            raise invalid("A label such as SPEAKER_00.", "body", "segments", index, "speaker")
        wanted[edit.segment_id] = edit
    return [
        _changed(segment, wanted[segment["segment_id"]])
        if segment["segment_id"] in wanted
        else segment
        for segment in segments
    ]


def _changed(segment: Segment, edit: SegmentEdit) -> Segment:
    changed = segment
    if edit.text is not None and edit.text.strip() != segment["text"]:
        # The times of words belong to the words that were said, not to the new text.
        changed = changed | {"text": edit.text.strip(), "words": []}
    if "speaker" in edit.model_fields_set:
        changed = changed | {"speaker": edit.speaker}
    return changed


# -- splitting ---------------------------------------------------------------------------------


def _split(
    segments: Sequence[Segment], splits: Sequence[SegmentSplit], revision: int
) -> list[Segment]:
    wanted: dict[str, tuple[int, SegmentSplit]] = {}
    known = {segment["segment_id"] for segment in segments}
    for index, split in enumerate(splits):
        if split.segment_id not in known or split.segment_id in wanted:
            raise invalid("No such segment, or named twice.", "body", "splits", index, "segment_id")
        wanted[split.segment_id] = (index, split)
    result: list[Segment] = []
    for segment in segments:
        if segment["segment_id"] in wanted:
            result += _halves(segment, *wanted[segment["segment_id"]], revision)
        else:
            result.append(segment)
    return result


def _halves(segment: Segment, index: int, split: SegmentSplit, revision: int) -> list[Segment]:
    text = segment["text"]
    offset = split.offset
    # A sentence's end stays with the sentence.
    while offset < len(text) and text[offset] in _CLOSING:
        offset += 1
    before, after = text[:offset].rstrip(), text[offset:].lstrip()
    if not before or not after:
        raise invalid("Both parts need some text.", "body", "splits", index, "offset")
    start, end = segment["start_time"], segment["end_time"]
    first_words, last_words = _words_on_both_sides(segment, offset)
    if split.time is not None:
        if not start <= split.time <= end:
            raise invalid("Not within the segment.", "body", "splits", index, "time")
        first_end = last_start = round(split.time, 3)
        first_words = [word for word in first_words if word["end_time"] <= split.time]
        last_words = [word for word in last_words if word["start_time"] >= split.time]
    elif first_words and last_words:
        first_end, last_start = first_words[-1]["end_time"], last_words[0]["start_time"]
    else:
        # Without times of words: as if all were spoken equally fast.
        first_end = last_start = round(start + (end - start) * len(before) / len(text), 3)
    return [
        segment | {"end_time": first_end, "text": before, "words": first_words},
        segment
        | {
            "segment_id": f"{segment['segment_id']}_{revision}",
            "start_time": last_start,
            "text": after,
            "words": last_words,
        },
    ]


def _words_on_both_sides(segment: Segment, offset: int) -> tuple[list[Segment], list[Segment]]:
    """Return the words before and after a place in the text; none if a word is cut by it."""
    before: list[Segment] = []
    after: list[Segment] = []
    place = 0
    for word in segment["words"]:
        place = segment["text"].find(word["text"], place)
        if place < 0 or place < offset < place + len(word["text"]):
            return [], []
        (before if place < offset else after).append(word)
        place += len(word["text"])
    return before, after


# -- merging -----------------------------------------------------------------------------------


def _merged(segments: list[Segment], merges: Sequence[SegmentMerge]) -> list[Segment]:
    result = list(segments)
    for index, merge in enumerate(merges):
        places = {segment["segment_id"]: place for place, segment in enumerate(result)}
        first = places.get(merge.segment_ids[0], -1)
        run = result[first : first + len(merge.segment_ids)] if first >= 0 else []
        if [segment["segment_id"] for segment in run] != merge.segment_ids:
            raise invalid(
                "Segments that follow one another, in their order.",
                *("body", "merges", index, "segment_ids"),
            )
        result[first : first + len(run)] = [_joined(run)]
    return result


def _joined(segments: Sequence[Segment]) -> Segment:
    every_word = all(segment["words"] for segment in segments if segment["text"])
    return segments[0] | {
        "end_time": segments[-1]["end_time"],
        "text": run_on(segment["text"] for segment in segments),
        "confidence": _joined_confidence(segments),
        "words": [word for segment in segments for word in segment["words"]] if every_word else [],
    }


def _joined_confidence(segments: Sequence[Segment]) -> float | None:
    """Return the mean of the confidences, each counted by its text; None if one is unknown."""
    if any(segment["confidence"] is None for segment in segments):
        return None
    weights = [max(1, len(segment["text"])) for segment in segments]
    total = sum(
        float(segment["confidence"]) * weight
        for segment, weight in zip(segments, weights, strict=True)
    )
    return round(total / sum(weights), 4)
