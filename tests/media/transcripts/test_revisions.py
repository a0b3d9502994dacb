import asyncio
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from sidecar.kernel.errors import ProjectError
from sidecar.media.schemas import RevisionEdit
from sidecar.media.store import StoredRevision
from sidecar.media.transcripts.revisions import _checked_names, named_segments
from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import undecodable

pytestmark = pytest.mark.asyncio(loop_scope="package")


def _path(job: dict[str, Any]) -> str:
    return f"{TRANSCRIPTIONS}/{job['job_id']}/revisions"


async def _patch(media: MediaClient, job: dict[str, Any], base: int, text: str) -> httpx.Response:
    edit = {"base_revision": base, "segments": [{"segment_id": "segment_0001", "text": text}]}
    return await media.http.patch(_path(job), json=edit)


@pytest.mark.proves(
    "media.revisions.list", "media.revisions.get", "media.revisions.first-is-recogniser", "media.revisions.original-kept",
    "media.revisions.patch", "media.revisions.edit-text", "media.revisions.immutable", "media.revisions.job-shows-current",
)  # fmt: skip
async def test_an_edit_makes_a_revision(media: MediaClient, short: dict[str, Any]) -> None:
    assert short["revision"] == 1
    original = (await media.http.get(f"{_path(short)}/1")).json()
    assert original["segments"] == short["segments"]
    assert (original["origin"], original["base_revision"]) == ("recognizer", None)
    for number, text in ((2, "我的同胞们"), (3, "My fellow citizens")):
        answer = await _patch(media, short, number - 1, text)
        assert answer.status_code == 200, answer.text
        revision = answer.json()
        assert (revision["revision"], revision["base_revision"], revision["origin"]) == (
            number,
            number - 1,
            "user",
        )
        first, *others = revision["segments"]
        assert first == short["segments"][0] | {"text": text}
        assert others == short["segments"][1:]
        assert (await media.http.get(f"{_path(short)}/{number}")).json() == revision
    listed = (await media.http.get(_path(short))).json()
    assert [(item["revision"], item["origin"]) for item in listed["items"]] == [
        (3, "user"), (2, "user"), (1, "recognizer"),
    ]  # fmt: skip
    assert listed["page"]["total"] == 3
    assert (await media.http.get(f"{_path(short)}/1")).json() == original
    job = await media.job(short["job_id"])
    assert job["revision"] == 3
    assert job["text"].startswith("My fellow citizens")
    for unknown in ("0", "4", "first", "1.0"):
        answer = await media.http.get(f"{_path(short)}/{unknown}")
        assert (answer.status_code, code_of(answer)) == (404, "RESOURCE_NOT_FOUND")


@pytest.mark.proves("media.revisions.conflict")
async def test_of_two_edits_at_once_one_succeeds(media: MediaClient, short: dict[str, Any]) -> None:
    answers = await asyncio.gather(
        *(_patch(media, short, 1, f"Edit {number}") for number in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert code_of(refused) == "TRANSCRIPT_REVISION_CONFLICT"
    assert refused.json()["error"]["details"] == {"current_revision": 2}
    assert (await media.http.get(_path(short))).json()["page"]["total"] == 2


@pytest.mark.proves("media.revisions.invalid")
@pytest.mark.parametrize(
    "edit",
    [
        {},
        {"segments": [{"segment_id": "segment_9999", "text": "x"}]},
        {
            "segments": [
                {"segment_id": "segment_0001", "text": "a"},
                {"segment_id": "segment_0001", "text": "b"},
            ]
        },
        {"speakers": {"SPEAKER_00": "Ann"}},
        {"segments": [{"segment_id": "segment_0001"}]},
        {"start_time": 0},
        {"segments": [{"segment_id": "segment_0001", "text": "no text file\0 holds this"}]},
    ],
)
async def test_an_edit_that_fits_nothing_is_refused(
    media: MediaClient, speech: dict[str, Any], edit: dict[str, Any]
) -> None:
    answer = await media.http.patch(_path(speech), json={"base_revision": 1} | edit)
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    assert (await media.job(speech["job_id"]))["revision"] == 1


@pytest.mark.proves("media.revisions.not-ready")
async def test_a_job_without_a_transcript_has_no_revisions(media: MediaClient) -> None:
    job = await media.transcribed(undecodable())
    answers = [
        await media.http.get(_path(job)),
        await media.http.get(f"{_path(job)}/1"),
        await _patch(media, job, 1, "x"),
    ]
    assert {(answer.status_code, code_of(answer)) for answer in answers} == {
        (409, "TRANSCRIPT_NOT_READY")
    }


async def test_a_name_is_shown_on_every_segment_of_its_label() -> None:
    segments = [
        {"segment_id": str(number), "speaker": f"SPEAKER_0{number % 2}"} for number in range(3)
    ]
    revision = StoredRevision(1, None, "recognizer", segments, {"SPEAKER_00": "Ann"}, "")
    assert [segment["speaker"] for segment in named_segments(revision)] == [
        "Ann",
        "SPEAKER_01",
        "Ann",
    ]
    assert _checked_names(
        segments, RevisionEdit(base_revision=1, speakers={"SPEAKER_01": " Li  Lei "})
    ) == {"SPEAKER_01": "Li Lei"}
    for wrong in ({"SPEAKER_01": "  "}, {"SPEAKER_02": "Bob"}, {"Ann": "Bob"}):
        with pytest.raises(ProjectError, match="VALIDATION_ERROR"):
            _checked_names(segments, RevisionEdit(base_revision=1, speakers=wrong))
    with pytest.raises(ValidationError):
        RevisionEdit(base_revision=1, speakers={"SPEAKER_01": "L\0i"})
