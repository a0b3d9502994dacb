"""Notes of transcripts in which several people speak: what is shown, cited and laid out."""

from typing import Any

import pytest
import pytest_asyncio

from sidecar.media.transcripts.note_templates import PARAGRAPH_SECONDS, as_dialogue
from sidecar.vault.schemas import TranscriptPassage
from tests.media.client import TRANSCRIPTIONS, MediaClient
from tests.media.samples import CALL

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def call(media: MediaClient) -> dict[str, Any]:
    """The transcript of a call whose speakers were told by hand and named."""
    job = await media.transcribed(CALL, "call.flac", language="en")
    assert len(job["segments"]) >= 4
    spoken = [
        {"segment_id": segment["segment_id"], "speaker": f"SPEAKER_0{number // 2 % 2}"}
        for number, segment in enumerate(job["segments"])
    ]
    edit = {
        "base_revision": 1,
        "segments": spoken,
        "speakers": {"SPEAKER_00": "Diane", "SPEAKER_01": "韩 梅梅"},
    }
    answer = await media.http.patch(f"{TRANSCRIPTIONS}/{job['job_id']}/revisions", json=edit)
    assert answer.status_code == 200, answer.text
    return await media.job(job["job_id"])


async def _note(media: MediaClient, job: dict[str, Any], **request: Any) -> dict[str, Any]:
    answer = await media.http.post(f"{TRANSCRIPTIONS}/{job['job_id']}/notes", json=request)
    assert answer.status_code == 201, answer.text
    note: dict[str, Any] = answer.json()
    return note


@pytest.mark.proves("media.notes.speakers", "media.revisions.notes-use-current")
async def test_speakers_are_shown_or_left_out(media: MediaClient, call: dict[str, Any]) -> None:
    shown = (await _note(media, call, title="With names"))["content"]
    for segment in call["segments"]:
        assert f"**{segment['speaker']}:** {segment['text'][:10]}" in shown
    hidden = (await _note(media, call, title="Without", include_speakers=False))["content"]
    for name in ("Diane:", "韩 梅梅", "SPEAKER"):
        assert name not in hidden
    assert call["segments"][0]["text"][:10] in hidden


@pytest.mark.proves("media.notes.citations", "media.notes.citations-independent")
@pytest.mark.parametrize("include", [True, False])
async def test_a_citation_says_who_spoke_and_when(
    media: MediaClient, call: dict[str, Any], include: bool
) -> None:
    note = await _note(
        media, call, title="Cited call", include_speakers=include, include_timestamps=include
    )
    for segment in call["segments"]:
        words = segment["text"].split()
        if len(words) < 5:
            continue
        request = {"query": " ".join(words[:6]), "mode": "fts", "note_ids": [note["note_id"]]}
        hits = (await media.http.post("/api/search", json=request)).json()["hits"]
        found = [
            (hit["source_audio"], hit["start_time"], hit["end_time"], hit["speaker"])
            for hit in hits
        ]
        said = (segment["start_time"], segment["end_time"], segment["speaker"])
        assert found[0] == (call["attachment_id"], *said)


async def test_a_dialogue_has_a_paragraph_for_each_turn(
    media: MediaClient, call: dict[str, Any]
) -> None:
    note = await _note(media, call, title="Dialogue", template_id="dialogue")
    turns = [
        number
        for number, segment in enumerate(call["segments"])
        if not number or segment["speaker"] != call["segments"][number - 1]["speaker"]
    ]
    paragraphs = note["content"].strip().split("\n\n")
    assert len(paragraphs) == len(turns) < len(call["segments"])
    second = call["segments"][1]["text"]
    request = {"query": second, "mode": "fts", "note_ids": [note["note_id"]]}
    hit = (await media.http.post("/api/search", json=request)).json()["hits"][0]
    assert hit["start_time"] == call["segments"][0]["start_time"]
    assert hit["end_time"] == call["segments"][turns[1] - 1]["end_time"]
    assert hit["speaker"] == "Diane"


async def test_a_long_turn_is_cut_at_a_sentence() -> None:
    said = [
        TranscriptPassage(
            "一句话。" if number % 2 else "还没说完，", number * 10.0, number * 10.0 + 9, "A"
        )
        for number in range(30)
    ]
    paragraphs = as_dialogue(said)
    assert "".join(paragraph.text for paragraph in paragraphs) == "".join(
        passage.text for passage in said
    )
    assert len(paragraphs) >= 3
    for paragraph in paragraphs:
        assert paragraph.text.endswith("。")
        assert paragraph.end_time - paragraph.start_time <= PARAGRAPH_SECONDS + 20
