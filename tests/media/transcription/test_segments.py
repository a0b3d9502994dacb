import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.media.transcription.segments import segments_of, transcript_text


def _raw(
    start: float, end: float, text: str = " said", words: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, "log_probability": -0.2, "words": words or []}


def test_segments_are_put_in_order_and_numbered() -> None:
    found = segments_of([_raw(5, 9, " two"), _raw(0, 5, " one")], 10.0, "en")
    assert [(item["segment_id"], item["text"]) for item in found] == [
        ("segment_0001", "one"),
        ("segment_0002", "two"),
    ]
    assert transcript_text(found) == "one two"


def test_chinese_sentences_follow_one_another_without_a_blank() -> None:
    texts = ("调度的目标有三个。", "先来先服务。", "FCFS.", "Round robin.", "", "完成了80%", "预计")
    assert transcript_text({"text": text} for text in texts) == (
        "调度的目标有三个。先来先服务。 FCFS. Round robin.完成了80%预计"
    )


def test_empty_segments_are_left_out() -> None:
    assert segments_of([_raw(0, 1, "  ")], 10.0, "en") == []


def test_what_no_text_file_can_hold_is_left_out() -> None:
    assert segments_of([_raw(0, 1, "one\0two\0")], 10.0, "en")[0]["text"] == "one two"


def test_a_segment_ends_with_the_recording_at_the_latest() -> None:
    assert segments_of([_raw(3, 12)], 10.0, "en")[0]["end_time"] == 10.0


def test_the_confidence_is_the_mean_probability_of_the_tokens() -> None:
    assert segments_of([_raw(0, 1)], 10.0, "en")[0]["confidence"] == pytest.approx(
        math.exp(-0.2), abs=1e-4
    )


def test_words_stay_inside_their_segment() -> None:
    words = [
        {"text": " a", "start": -1.0, "end": 2.0, "probability": 1.2},
        {"text": "b", "start": 1.0, "end": 99.0, "probability": 0.5},
    ]
    first, second = segments_of([_raw(0, 5, words=words)], 10.0, "en")[0]["words"]
    assert first == {"text": "a", "start_time": 0.0, "end_time": 2.0, "confidence": 1.0}
    assert second == {"text": "b", "start_time": 2.0, "end_time": 5.0, "confidence": 0.5}


def test_mandarin_gets_its_own_punctuation() -> None:
    found = segments_of([_raw(0, 5, "同学们好,今天讲 3,000 个进程: 死锁!")], 10.0, "zh")
    assert found[0]["text"] == "同学们好，今天讲 3,000 个进程：死锁！"
    assert segments_of([_raw(0, 5, "hello, world")], 10.0, "zh")[0]["text"] == "hello, world"


times = st.floats(-2, 40, allow_nan=False)


@given(st.lists(st.tuples(times, times, st.text(max_size=5))), st.floats(0.1, 30))
def test_any_result_becomes_segments_that_keep_the_rules(
    raw: list[tuple[float, float, str]], duration: float
) -> None:
    found = segments_of([_raw(*item) for item in raw], duration, None)
    latest = 0.0
    for segment in found:
        assert latest <= segment["start_time"] <= segment["end_time"] <= duration + 0.001
        assert 0.0 <= segment["confidence"] <= 1.0
        latest = segment["end_time"]
    assert len({segment["segment_id"] for segment in found}) == len(found)
