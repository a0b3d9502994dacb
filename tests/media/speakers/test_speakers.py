"""Turns of speakers joined with segments and words."""

from typing import Any

import pytest

from sidecar.media.speakers.turns import Turn, Turns, with_speakers
from sidecar.media.transcription.segments import segments_of

TURNS = Turns([Turn(0.0, 2.0, "b"), Turn(2.0, 5.0, "a"), Turn(8.0, 9.0, "b")])


def said(text: str, start: float, *, seconds: float = 0.5) -> dict[str, Any]:
    """Return a segment of words of equal length, as the recogniser gives it."""
    words: list[dict[str, Any]] = [
        {
            "text": word,
            "start": start + number * seconds,
            "end": start + (number + 1) * seconds,
            "probability": 0.9,
        }
        for number, word in enumerate(f" {part}" for part in text.split())
    ]
    return {
        "start": start,
        "end": words[-1]["end"],
        "text": "".join(word["text"] for word in words),
        "log_probability": -0.1,
        "words": words,
    }


def shown(segments: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
    return [(segment["speaker"], segment["text"].strip()) for segment in segments]


def test_the_speaker_is_who_talks_most() -> None:
    assert TURNS.speaker_of(1.0, 2.4) == "b"
    assert TURNS.speaker_of(1.8, 2.4) == "a"
    assert TURNS.speaker_of(0.5, 9.0) == "a"
    assert TURNS.speakers == {"a", "b"}


def test_of_several_who_talk_at_once_the_longest_counts() -> None:
    """The turns that don't overlap cut a short word into pieces; they only decide between equals."""
    both = [Turn(6.73, 7.19, "a"), Turn(6.75, 7.03, "b")]
    alone = [Turn(6.73, 6.75, "a"), Turn(6.75, 7.03, "b"), Turn(7.03, 7.19, "a")]
    assert Turns(both, alone).speaker_of(6.38, 6.94) == "a"
    assert Turns(both, alone).speaker_of(6.8, 6.9) == "b"
    long = [Turn(0.0, 60.0, "a"), *(Turn(n + 0.1, n + 0.2, "b") for n in range(1, 50))]
    assert Turns(long).speaker_of(49.0, 49.4) == "a"
    assert Turns(long).speaker_of(60.5, 60.8) == "a"


def test_speech_between_turns_belongs_to_the_nearest_within_a_second() -> None:
    assert TURNS.speaker_of(5.2, 5.4) == "a"
    assert TURNS.speaker_of(7.2, 7.6) == "b"
    assert TURNS.speaker_of(6.2, 6.6) is None
    assert TURNS.speaker_of(10.5, 11.0) is None
    assert Turns([]).speaker_of(0.0, 1.0) is None


@pytest.mark.proves("media.diarization.labels")
def test_labels_are_given_in_order_of_appearance() -> None:
    segments = with_speakers([said("one two", 0.5), said("three four", 3.0)], TURNS)
    assert shown(segments) == [("SPEAKER_00", "one two"), ("SPEAKER_01", "three four")]


def test_a_segment_is_cut_where_the_speaker_changes() -> None:
    segments = with_speakers([said("one two three four five six", 0.5)], TURNS)
    assert shown(segments) == [("SPEAKER_00", "one two three"), ("SPEAKER_01", "four five six")]
    kept = segments_of(segments, 10.0, "en")
    assert [(s["start_time"], s["end_time"]) for s in kept] == [(0.5, 2.0), (2.0, 3.5)]
    assert [len(s["words"]) for s in kept] == [3, 3]
    assert [s["segment_id"] for s in kept] == ["segment_0001", "segment_0002"]


def test_a_change_near_the_end_of_a_sentence_is_there() -> None:
    """Times of words are blurred: the answer's first word was heard a moment before its turn."""
    segments = with_speakers([said("is it done? Yes it is", 0.3)], TURNS)
    assert shown(segments) == [("SPEAKER_00", "is it done?"), ("SPEAKER_01", "Yes it is")]
    later = with_speakers([said("is it really done? Yes it", 0.3)], TURNS)
    assert shown(later) == [("SPEAKER_00", "is it really done?"), ("SPEAKER_01", "Yes it")]


def test_words_in_no_turn_stay_with_their_neighbours() -> None:
    segments = with_speakers([said("one two three four five six seven", 4.0, seconds=0.6)], TURNS)
    assert shown(segments)[0][0] == "SPEAKER_00"
    assert " ".join(text for _, text in shown(segments)) == "one two three four five six seven"


def test_without_words_a_segment_stays_whole() -> None:
    segment = {"start": 1.0, "end": 4.0, "text": "Whole."}
    assert shown(with_speakers([segment], TURNS)) == [("SPEAKER_00", "Whole.")]
    (kept,) = segments_of(with_speakers([segment], TURNS), 10.0, "en")
    assert kept["speaker"] == "SPEAKER_00"


def test_nobody_near_is_nobody() -> None:
    assert shown(with_speakers([said("hm", 20.0)], TURNS)) == [(None, "hm")]
