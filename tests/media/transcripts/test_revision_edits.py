"""Splitting, merging, and saying who spoke."""

from typing import Any

import pytest

from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def _edit(media: MediaClient, job: dict[str, Any], base: int, **edit: Any) -> dict[str, Any]:
    path = f"{TRANSCRIPTIONS}/{job['job_id']}/revisions"
    answer = await media.http.patch(path, json={"base_revision": base, **edit})
    assert answer.status_code == 200, answer.text
    revision: dict[str, Any] = answer.json()
    shown = await media.job(job["job_id"])
    assert shown["segments"] == revision["segments"]
    assert shown["revision"] == revision["revision"] == base + 1
    return revision


async def _own(media: MediaClient, speech: dict[str, Any]) -> dict[str, Any]:
    """Return a further transcript of the recording, which a test may edit."""
    options = {"language": "en", "word_timestamps": True}
    started = await media.start(speech["attachment_id"], **options)
    return await media.finished(started["job_id"])


@pytest.mark.proves("media.revisions.original-kept", "media.revisions.patch")
async def test_a_segment_is_split_at_a_word_and_put_together_again(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    job = await _own(media, speech)
    whole = job["segments"][0]
    offset = whole["text"].index("Americans") + len("Americans")
    cut = next(word for word in whole["words"] if word["start_time"] and "mericans" in word["text"])
    revision = await _edit(
        media, job, 1, splits=[{"segment_id": whole["segment_id"], "offset": offset}]
    )
    first, second = revision["segments"][:2]
    assert (first["segment_id"], second["segment_id"]) == ("segment_0001", "segment_0001_2")
    assert first["text"].rstrip(",.").endswith("Americans")
    assert second["text"][0].isalpha()
    assert f"{first['text']}{second['text']}".replace(" ", "") == whole["text"].replace(" ", "")
    assert first["start_time"] == whole["start_time"]
    assert second["end_time"] == whole["end_time"]
    assert first["end_time"] == cut["end_time"]
    assert second["start_time"] == second["words"][0]["start_time"] >= first["end_time"]
    assert [*first["words"], *second["words"]] == whole["words"]
    ids = [segment["segment_id"] for segment in revision["segments"]][:2]
    merged = await _edit(media, job, 2, merges=[{"segment_ids": ids}])
    again = merged["segments"][0]
    assert (again["segment_id"], again["words"]) == ("segment_0001", whole["words"])
    assert (again["start_time"], again["end_time"]) == (whole["start_time"], whole["end_time"])
    original = await media.http.get(f"{TRANSCRIPTIONS}/{job['job_id']}/revisions/1")
    assert original.json()["segments"] == job["segments"]


async def test_a_split_without_words_goes_by_the_length_of_the_text(
    media: MediaClient, short: dict[str, Any]
) -> None:
    whole = short["segments"][0]
    half = whole["text"].index(" ", len(whole["text"]) // 2)
    revision = await _edit(media, short, 1, splits=[{"segment_id": "segment_0001", "offset": half}])
    first, second = revision["segments"][:2]
    assert whole["start_time"] < first["end_time"] == second["start_time"] < whole["end_time"]
    told = round(whole["start_time"] + 0.5, 3)
    revision = await _edit(
        media, short, 2, splits=[{"segment_id": "segment_0001", "offset": 3, "time": told}]
    )
    assert revision["segments"][1]["segment_id"] == "segment_0001_3"
    assert revision["segments"][0]["end_time"] == revision["segments"][1]["start_time"] == told


@pytest.mark.proves("media.revisions.name-speakers")
async def test_who_spoke_is_said_and_named(media: MediaClient, speech: dict[str, Any]) -> None:
    job = await _own(media, speech)
    # Everything in one edit: cut the first segment, and give each part to somebody.
    first = job["segments"][0]
    revision = await _edit(media, job, 1, splits=[{"segment_id": first["segment_id"], "offset": 6}])
    ids = [segment["segment_id"] for segment in revision["segments"]]
    spoken = [{"segment_id": found, "speaker": f"SPEAKER_0{n % 2}"} for n, found in enumerate(ids)]
    revision = await _edit(media, job, 2, segments=spoken, speakers={"SPEAKER_00": "李 雷"})
    assert [part["speaker"] for part in revision["segments"]] == [
        ("李 雷", "SPEAKER_01")[n % 2] for n in range(len(ids))
    ]
    assert revision["speakers"] == {"SPEAKER_00": "李 雷", "SPEAKER_01": "SPEAKER_01"}
    # The name follows the label, and so goes to whoever gets it later.
    revision = await _edit(
        media, job, 3, segments=[{"segment_id": ids[1], "speaker": "SPEAKER_00"}]
    )
    assert revision["segments"][1]["speaker"] == "李 雷"
    revision = await _edit(media, job, 4, segments=[{"segment_id": ids[1], "speaker": None}])
    assert revision["segments"][1]["speaker"] is None
    note = await media.http.post(f"{TRANSCRIPTIONS}/{job['job_id']}/notes", json={"title": "名字"})
    assert "**李 雷:**" in note.json()["content"]


@pytest.mark.proves("media.revisions.invalid")
@pytest.mark.parametrize(
    "edit",
    [
        {"splits": [{"segment_id": "segment_9999", "offset": 3}]},
        {"splits": [{"segment_id": "segment_0001", "offset": 0}]},
        {"splits": [{"segment_id": "segment_0001", "offset": 100_000}]},
        {"splits": [{"segment_id": "segment_0001", "offset": 3, "time": 9999.0}]},
        {"splits": [{"segment_id": "segment_0001", "offset": n} for n in (3, 6)]},
        {"merges": [{"segment_ids": ["segment_0001"]}]},
        {"merges": [{"segment_ids": ["segment_0001", "segment_0001"]}]},
        {"merges": [{"segment_ids": ["segment_0002", "segment_0001"]}]},
        {"merges": [{"segment_ids": ["segment_0001", "segment_9999"]}]},
        {"segments": [{"segment_id": "segment_0001", "speaker": "李雷"}]},
        {"segments": [{"segment_id": "segment_0001", "speaker": "SPEAKER_1"}]},
    ],
)
async def test_what_does_not_fit_the_segments_is_refused(
    media: MediaClient, speech: dict[str, Any], edit: dict[str, Any]
) -> None:
    path = f"{TRANSCRIPTIONS}/{speech['job_id']}/revisions"
    answer = await media.http.patch(path, json={"base_revision": 1, **edit})
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    assert (await media.job(speech["job_id"]))["revision"] == 1
