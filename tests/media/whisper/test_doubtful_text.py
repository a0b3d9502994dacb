"""What is taken out of a recogniser's result by its own measures."""

from typing import Any

import pytest

from sidecar.media.whisper.doubtful_text import believed, compression, without_loops


def segment(text: str, certainty: float = -0.2, silence: float = 0.1) -> dict[str, Any]:
    """Return a segment as the worker gives it; each character is a word of it."""
    words = [
        {"text": letter, "start": float(n), "end": n + 1.0, "probability": 0.9}
        for n, letter in enumerate(text)
    ]
    return {
        "start": 0.0, "end": float(len(text)), "text": text, "log_probability": certainty,
        "no_speech": silence, "words": words,
    }  # fmt: skip


def test_what_was_said_is_kept() -> None:
    said = [
        segment("调度的目标有三个"),
        segment("公平"),
        segment("公平"),
        segment("高效", -1.4, 0.2),
    ]
    kept = believed(said)
    assert kept.segments == said
    assert kept.warnings == []


def test_an_invented_sentence_is_taken_out() -> None:
    kept = believed([segment("好"), segment("请不吝点赞订阅转发", -1.3, 0.9)])
    assert [found["text"] for found in kept.segments] == ["好"]
    assert kept.warnings == ["UNCERTAIN_TEXT_REMOVED"]


@pytest.mark.parametrize(
    "text", ["以下是普通话的句子。", "这就是普通话的句子。", " 这次是普通话的句子"]
)
def test_an_echo_of_what_the_recogniser_was_told_is_taken_out(text: str) -> None:
    kept = believed([segment(text), segment("这是普通话的一个例子")], "以下是普通话的句子。")
    assert [found["text"] for found in kept.segments] == ["这是普通话的一个例子"]
    assert kept.warnings == ["UNCERTAIN_TEXT_REMOVED"]
    assert believed([segment(text)]).warnings == []


def test_marks_without_a_word_are_no_text() -> None:
    kept = believed([segment(" ..."), segment("♪"), segment("好")])
    assert [found["text"] for found in kept.segments] == ["好"]
    assert kept.warnings == ["UNCERTAIN_TEXT_REMOVED"]


def test_a_sentence_that_never_ends_is_kept_twice() -> None:
    kept = believed([segment(" Thank you.") for _ in range(40)])
    assert [found["text"] for found in kept.segments] == [" Thank you."] * 2
    assert kept.warnings == ["REPEATED_TEXT_REMOVED"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("我们来看" + "这个问题，" * 30 + "就这样", "我们来看这个问题，就这样"),
        ("well " + "and so on " * 40, "well and so on"),
        ("哈" * 120, "哈"),
    ],
)
def test_a_phrase_that_goes_round_in_circles_is_kept_once(text: str, left: str) -> None:
    kept = believed([segment(text)])
    (found,) = kept.segments
    assert found["text"].strip() == left
    assert "".join(word["text"] for word in found["words"]).strip() == left
    assert kept.warnings == ["REPEATED_TEXT_REMOVED"]
    assert compression(found["text"]) <= 2.4


@pytest.mark.parametrize("text", ["不不不", "no no no, not that", "一二三四五六七八九十" * 2, ""])
def test_what_people_repeat_is_theirs(text: str) -> None:
    once = segment(text)
    assert without_loops(once) is once
