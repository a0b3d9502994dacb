"""Which terms a text nearly holds, and what is taken over from a second hearing."""

from types import SimpleNamespace

import pytest

from sidecar.media.transcription.note_terms import rarest_terms, terms_in
from sidecar.media.whisper.near_terms import NearTerms, replacements, sound
from sidecar.media.whisper.second_look import put_in

TERMS = ["页面置换算法", "死锁", "银行家算法", "占有并等待", "会计准则", "Kubernetes", "Grafana"]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("调度和死所", ["死锁"]),
        ("银行加算法和业面制换算法", ["银行家算法", "页面置换算法"]),
        ("we run it on cooper netties", ["Kubernetes"]),
        ("银行家算法和死锁，Kubernetes", []),
        ("今天的天气很好", []),
        ("the weather is fine today", []),
        ("", []),
    ],
)
def test_a_misheard_term_is_near(text: str, near: list[str]) -> None:
    assert sorted(NearTerms(TERMS).in_text(text)) == sorted(near)


def test_words_that_sound_alike_have_one_sound() -> None:
    assert sound("Kubernetes") == sound("cooper netties")
    assert sound("Grafana") != sound("banana")


@pytest.mark.parametrize(
    ("old", "new", "mended"),
    [
        ("今天讲死所，银行加算法。", "今天讲死锁。银行家算法。", "今天讲死锁，银行家算法。"),
        ("占有兵且等待", "占有并且等待", "占有并且等待"),
        ("on Cooper Netties, today", "on Kubernetes today.", "on Kubernetes, today"),
        # What has nothing to do with a term stays as it was heard first.
        ("请大家在星期五讲死所", "请大家再星期五讲死锁", "请大家在星期五讲死锁"),
        ("下一节课我们", "下一阶刻我们", "下一节课我们"),
        # Near once, and then believed.
        ("讲死所，此所不会发生", "讲死锁，死锁不会发生", "讲死锁，死锁不会发生"),
        # Said by the hotwords alone, nothing like it was heard before.
        ("今天天气很好", "今天天气很好，死锁", "今天天气很好"),
    ],
)
def test_only_terms_are_taken_over(old: str, new: str, mended: str) -> None:
    text = old
    for change in reversed(replacements(old, new, TERMS)):
        text = text[: change.start] + change.text + text[change.end :]
    assert text == mended


def test_words_keep_their_times_when_a_term_is_put_in() -> None:
    def word(text: str, start: float, end: float, probability: float) -> SimpleNamespace:
        return SimpleNamespace(word=text, start=start, end=end, probability=probability)

    first = SimpleNamespace(text="调度", words=[word("调度", 0.0, 1.0, 0.9)])
    words = [word("和", 1.0, 1.2, 0.9), word("死", 1.2, 1.5, 0.8), word("所。", 1.5, 2.0, 0.5)]
    second = SimpleNamespace(text="和死所。", words=words)
    put_in([first, second], replacements("调度和死所。", "调度和死锁。", ["死锁"]))
    assert (first.text, second.text) == ("调度", "和死锁。")
    assert [(w.word, w.start, w.end, w.probability) for w in second.words] == [
        ("和", 1.0, 1.2, 0.9),
        ("死锁。", 1.2, 2.0, 0.5),
    ]


def test_names_of_notes_become_terms() -> None:
    assert set(terms_in("第三章 死锁的四个必要条件")) == {
        "死锁的四个必要条件",
        "死锁",
        "四个必要条件",
    }
    assert set(terms_in("Redis缓存与Kafka Streams")) == {
        "缓存", "Redis", "Kafka", "Streams", "Kafka Streams",
    }  # fmt: skip
    assert list(terms_in("a 1 2024-03-01 的")) == []


def test_rare_terms_come_first_and_common_ones_not_at_all() -> None:
    notes = [[f"周报 {number}", "项目进度"] for number in range(30)] + [["银行家算法"], ["死锁"]]
    notes += [["死锁", "deadlock"]]
    assert rarest_terms(notes) == ("银行家算法", "deadlock", "死锁")
    assert rarest_terms([]) == ()
