"""Subtitles of transcripts: cues, lines, files."""

import re
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest

from sidecar.media.transcripts.subtitles import LINE_COLUMNS, columns, cues_of, lines_of, srt, vtt
from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import undecodable

asyncio_mark = pytest.mark.asyncio(loop_scope="package")

SRT_TIME = re.compile(r"(\d\d):(\d\d):(\d\d),(\d{3}) --> (\d\d):(\d\d):(\d\d),(\d{3})")


def _segment(text: str, start: float, end: float, speaker: str | None = None) -> dict[str, Any]:
    return {"start_time": start, "end_time": end, "text": text, "speaker": speaker, "words": []}


def _times(document: str) -> list[tuple[float, float]]:
    def seconds(parts: tuple[str, ...]) -> float:
        hours, minutes, whole, thousandths = map(int, parts)
        return 3600 * hours + 60 * minutes + whole + thousandths / 1000

    found = [match.groups() for match in SRT_TIME.finditer(document)]
    return [(seconds(parts[:4]), seconds(parts[4:])) for parts in found]


LECTURE = (
    "死锁的四个必要条件是：互斥，占有并且等待，不可抢占，循环等待。只要破坏其中任何一个条件，死锁就不会发生。"
    "银行家算法在分配资源之前先检查系统是否处于安全状态。"
)


def test_a_long_passage_becomes_cues_that_can_be_read() -> None:
    cues = cues_of([_segment(LECTURE, 0.0, 18.0)])
    assert "".join("".join(cue.lines) for cue in cues) == LECTURE
    assert cues[0].start == 0.0
    assert cues[-1].end == 18.0
    for cue, after in pairwise(cues):
        assert cue.end == after.start
    for cue in cues:
        assert len(cue.lines) <= 2
        assert 0.5 < cue.end - cue.start <= 8.0
        for line in cue.lines:
            assert columns(line) <= LINE_COLUMNS
            assert line[0] not in "，。：；、！？"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        (
            "ask not what your country can do for you, ask what you can do",
            ["ask not what your country can do for you,", "ask what you can do"],
        ),
        ("我们今天用 Kubernetes 部署一个很小的服务，然后看日志", ["我们今天用 Kubernetes 部署", "一个很小的服务，然后看日志"]),
        ("他说“今天我们来讲一讲操作系统里的死锁”然后就开始了", ["他说“今天我们来讲一讲操作", "系统里的死锁”然后就开始了"]),
        ("x" * 60, ["x" * 42, "x" * 18]),
    ],
)  # fmt: skip
def test_lines_break_where_they_may(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


def test_a_cue_begins_with_the_word_that_it_begins_with() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    words: list[dict[str, Any]] = [
        {"text": word, "start_time": 10.0 + (n if n < 8 else n + 4), "end_time": 11.0 + n}
        for n, word in enumerate(text.split())
    ]
    segment = _segment(text, 10.0, 31.0) | {"words": words}
    starts = {round(word["start_time"], 3) for word in words}
    cues = cues_of([segment])
    assert len(cues) > 1
    for cue in cues:
        assert cue.start in starts
        said = next(word for word in words if word["start_time"] == cue.start)
        assert cue.lines[0].startswith(said["text"])


def test_markup_and_arrows_of_the_speech_stay_text() -> None:
    cues = cues_of(
        [_segment("a --> b & <i>c</i>", 3661.0, 3662.5, "Ann <b>"), _segment("", 4.0, 5.0)]
    )
    assert srt(cues) == "1\n01:01:01,000 --> 01:01:02,500\nAnn <b>: a → b & <i>c</i>\n"
    assert vtt(cues) == (
        "WEBVTT\n\n01:01:01.000 --> 01:01:02.500\n"
        "<v Ann &lt;b&gt;>a --&gt; b &amp; &lt;i&gt;c&lt;/i&gt;\n"
    )
    assert srt([]) == ""
    assert vtt([]) == "WEBVTT\n"


@asyncio_mark
async def test_a_transcript_is_sent_as_subtitles(media: MediaClient, short: dict[str, Any]) -> None:
    path = f"{TRANSCRIPTIONS}/{short['job_id']}/subtitles"
    edit = {
        "base_revision": 1,
        "segments": [{"segment_id": "segment_0001", "text": "我的同胞们", "speaker": "SPEAKER_00"}],
    }
    answer = await media.http.patch(f"{TRANSCRIPTIONS}/{short['job_id']}/revisions", json=edit)
    assert answer.status_code == 200, answer.text
    answer = await media.http.get(path, params={"format": "srt"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/x-subrip; charset=utf-8"
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith("attachment; ")
    assert disposition.endswith(f"; filename*=UTF-8''{quote('访谈.srt')}")
    assert "SPEAKER_00: 我的同胞们" in answer.text
    times = _times(answer.text)
    assert times == sorted(times)
    assert all(start < end for start, end in times)
    answer = await media.http.get(path, params={"format": "vtt", "speakers": False})
    assert answer.headers["Content-Type"] == "text/vtt; charset=utf-8"
    assert answer.text.startswith("WEBVTT\n\n00:00:0")
    assert "SPEAKER" not in answer.text
    first = await media.http.get(path, params={"format": "vtt", "revision": 1})
    assert "同胞" not in first.text
    assert short["segments"][0]["text"].split()[0] in first.text


@asyncio_mark
async def test_subtitles_that_cannot_be_made(media: MediaClient, short: dict[str, Any]) -> None:
    path = f"{TRANSCRIPTIONS}/{short['job_id']}/subtitles"
    queries: list[dict[str, Any]] = [
        {},
        {"format": "ass"},
        {"format": "srt", "revision": 0},
        {"format": "srt", "revision": 2**60},
        {"format": ""},
    ]
    for query in queries:
        answer = await media.http.get(path, params=query)
        assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    answer = await media.http.get(path, params={"format": "srt", "revision": 9})
    assert (answer.status_code, code_of(answer)) == (404, "RESOURCE_NOT_FOUND")
    answer = await media.http.get(f"{TRANSCRIPTIONS}/nothing/subtitles?format=srt")
    assert (answer.status_code, code_of(answer)) == (404, "RESOURCE_NOT_FOUND")
    failed = await media.transcribed(undecodable())
    answer = await media.http.get(f"{TRANSCRIPTIONS}/{failed['job_id']}/subtitles?format=vtt")
    assert (answer.status_code, code_of(answer)) == (409, "TRANSCRIPT_NOT_READY")
