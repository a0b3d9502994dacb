import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest

from sidecar.media.transcripts.notes import clock_time, escape_markdown, render, split_front_matter
from sidecar.vault.schemas import TranscriptPassage
from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.samples import JFK, undecodable

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def _note(
    media: MediaClient, job: dict[str, Any], status: int = 201, **request: Any
) -> dict[str, Any]:
    answer = await media.http.post(f"{TRANSCRIPTIONS}/{job['job_id']}/notes", json=request)
    assert answer.status_code == status, answer.text
    return answer.json()


def _file(media: MediaClient, note: dict[str, Any]) -> Path:
    assert media.app.vault is not None
    return media.app.vault / note["file_path"]


async def _edit(media: MediaClient, job: dict[str, Any], text: str) -> int:
    path = f"{TRANSCRIPTIONS}/{job['job_id']}/revisions"
    base = (await media.http.get(path)).json()["items"][0]["revision"]
    answer = await media.http.patch(
        path,
        json={"base_revision": base, "segments": [{"segment_id": "segment_0001", "text": text}]},
    )
    assert answer.status_code == 200, answer.text
    return int(answer.json()["revision"])


def _passage(text: str, start: float = 0.0, speaker: str | None = None) -> TranscriptPassage:
    return TranscriptPassage(text, start, start + 1, speaker)


async def test_times_are_shown_as_a_clock_would() -> None:
    assert [clock_time(seconds) for seconds in (0, 12.9, 61, 3599.9, 3600, 37_000)] == [
        "00:00", "00:12", "01:01", "59:59", "1:00:00", "10:16:40",
    ]  # fmt: skip


async def test_spoken_words_are_no_markdown() -> None:
    assert (
        escape_markdown("a*b* [x] <b> #tag C# $1 `c`") == r"a\*b\* \[x\] \<b\> \#tag C# \$1 \`c\`"
    )
    assert (
        escape_markdown("R&D, AT&T; &copy; &#169; &lt;b") == r"R&D, AT\&T; \&copy; \&#169; \&lt;b"
    )
    plain = render(
        [_passage("1. first"), _passage("- dash"), _passage("2026 was")],
        times=False,
        speakers=False,
    )
    assert plain == "1\\. first\n\n\\- dash\n\n2026 was\n"
    full = render(
        [_passage("你好", 75, "SPEAKER_00"), _passage("hi", 80)], times=True, speakers=True
    )
    assert full == "[01:15] **SPEAKER\\_00:** 你好\n\n[01:20] hi\n"


@pytest.mark.parametrize(
    ("content", "front"),
    [
        ("---\ntags: [a]\n---\nbody\n", "---\ntags: [a]\n---\n"),
        ("---\r\na: 1\r\n---\r\nbody", "---\r\na: 1\r\n---\r\n"),
        ("body\n---\nx\n---\n", ""),
        ("--- no\n", ""),
    ],
)
async def test_front_matter_is_told_from_the_body(content: str, front: str) -> None:
    assert split_front_matter(content) == (front, content.removeprefix(front))


@pytest.mark.proves(
    "media.notes.create",
    "media.notes.written",
    "media.notes.revision-recorded",
    "media.notes.request-fields",
)
async def test_a_transcript_becomes_a_note(media: MediaClient, speech: dict[str, Any]) -> None:
    note = await _note(media, speech, title="肯尼迪 Inaugural", folder="课程/演讲")
    assert note["title"] == "肯尼迪 Inaugural"
    assert note["folder"] == "课程/演讲"
    assert note["transcript"] == {"job_id": speech["job_id"], "revision": 1}
    text = _file(media, note).read_text(encoding="utf-8")
    assert "ask not what your country can do for you" in text
    assert len(re.findall(r"^\[00:\d\d\] ", text, re.MULTILINE)) == len(speech["segments"])
    read = (await media.http.get(f"/api/notes/{note['note_id']}")).json()
    assert read["content_hash"] == note["content_hash"]
    assert read["transcript"] == note["transcript"]


@pytest.mark.proves("media.notes.timestamps", "media.notes.repeat-default")
async def test_times_can_be_left_out_and_a_repeat_makes_another_note(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    first = await _note(media, speech, include_timestamps=False)
    assert first["title"] == "en-jfk"
    before = _file(media, first).read_bytes()
    assert not re.search(r"\[\d\d:\d\d\]", before.decode())
    second = await _note(media, speech, include_timestamps=False)
    assert second["note_id"] != first["note_id"]
    assert second["file_path"] != first["file_path"]
    assert _file(media, first).read_bytes() == before


@pytest.mark.proves("media.notes.not-ready")
async def test_only_a_finished_transcript_becomes_a_note(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    running = await media.start(speech["attachment_id"], language="en")
    failed = await media.transcribed(undecodable())
    cancelled = await media.start(speech["attachment_id"], language="en")
    await media.http.post(f"{TRANSCRIPTIONS}/{cancelled['job_id']}/cancel")
    await media.finished(cancelled["job_id"])
    assert failed["status"] == "failed"
    queued = await media.start(speech["attachment_id"], language="en")
    await media.until(queued["job_id"], "Queued")
    for job in (queued, failed, cancelled):
        answer = await media.http.post(
            f"{TRANSCRIPTIONS}/{job['job_id']}/notes", json={"title": "Too early"}
        )
        assert (answer.status_code, code_of(answer)) == (409, "TRANSCRIPT_NOT_READY")
    await media.http.post(f"{TRANSCRIPTIONS}/{queued['job_id']}/cancel")
    await media.finished(running["job_id"])
    assert media.app.vault is not None
    assert not list(media.app.vault.rglob("Too early*"))


@pytest.mark.proves("media.notes.folder-escape", "media.notes.template-unknown")
@pytest.mark.parametrize(
    ("request_fields", "status", "code"),
    [
        ({"folder": "../out"}, 422, "VALIDATION_ERROR"),
        ({"folder": "/etc"}, 422, "VALIDATION_ERROR"),
        ({"folder": "C:\\x"}, 422, "VALIDATION_ERROR"),
        ({"template_id": "lecture"}, 404, "RESOURCE_NOT_FOUND"),
        ({"colour": "red"}, 422, "VALIDATION_ERROR"),
        ({"title": "a\0b"}, 422, "VALIDATION_ERROR"),
        ({"folder": "a\0b"}, 422, "VALIDATION_ERROR"),
    ],
)
async def test_a_wrong_request_writes_nothing(
    media: MediaClient,
    speech: dict[str, Any],
    request_fields: dict[str, str],
    status: int,
    code: str,
) -> None:
    assert media.app.vault is not None
    before = sorted(media.app.vault.parent.rglob("*.md"))
    answer = await media.http.post(
        f"{TRANSCRIPTIONS}/{speech['job_id']}/notes", json=request_fields
    )
    assert (answer.status_code, code_of(answer)) == (status, code)
    assert sorted(media.app.vault.parent.rglob("*.md")) == before


@pytest.mark.proves("media.notes.folder-escape")
async def test_a_link_out_of_the_vault_is_not_followed(
    media: MediaClient, speech: dict[str, Any], tmp_path: Path
) -> None:
    assert media.app.vault is not None
    link = media.app.vault / "away"
    link.symlink_to(tmp_path, target_is_directory=True)
    answer = await media.http.post(
        f"{TRANSCRIPTIONS}/{speech['job_id']}/notes", json={"folder": "away"}
    )
    link.unlink()
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    assert not os.listdir(tmp_path)  # noqa: PTH208 - pathlib counts as blocking here


@pytest.mark.proves(
    "media.notes.update-existing", "media.notes.update-existing-status", "media.notes.update-idempotent",
    "media.notes.update-baseline-moves", "media.revisions.notes-use-current",
)  # fmt: skip
async def test_a_note_follows_its_transcript(media: MediaClient, short: dict[str, Any]) -> None:
    note = updated = await _note(media, short)
    for text in ("First edit.", "Second edit."):
        revision = await _edit(media, short, text)
        updated = await _note(media, short, 200, update_existing=True)
        assert updated["note_id"] == note["note_id"]
        assert updated["transcript"]["revision"] == revision
        assert text in _file(media, note).read_text(encoding="utf-8")
    modified = _file(media, note).stat().st_mtime_ns
    again = await _note(media, short, 200, update_existing=True)
    assert again == updated
    assert _file(media, note).stat().st_mtime_ns == modified


@pytest.mark.proves("media.notes.update-baseline-missing", "media.notes.update-options")
async def test_only_the_note_of_the_same_options_is_updated(
    media: MediaClient, short: dict[str, Any]
) -> None:
    other = await _note(media, short, title="Other", include_timestamps=False)
    content = _file(media, other).read_bytes()
    await _edit(media, short, "Edited.")
    for request in (
        {"title": "Other"},
        {"title": "Othex", "include_timestamps": False},
        {"title": "Other", "include_timestamps": False, "folder": "x"},
    ):
        answer = await media.http.post(
            f"{TRANSCRIPTIONS}/{short['job_id']}/notes", json=request | {"update_existing": True}
        )
        assert (answer.status_code, code_of(answer)) == (409, "NOTE_UPDATE_BASELINE_MISSING")
    assert _file(media, other).read_bytes() == content


@pytest.mark.proves("media.notes.update-conflict", "media.notes.update-conflict-same-revision")
@pytest.mark.parametrize("new_revision", [True, False])
async def test_a_note_that_the_user_changed_is_left_alone(
    media: MediaClient, short: dict[str, Any], new_revision: bool
) -> None:
    note = await _note(media, short, title=f"Mine {new_revision}")
    path = _file(media, note)
    path.write_text(path.read_text(encoding="utf-8") + "\nMy own words.\n", encoding="utf-8")
    content = path.read_bytes()
    if new_revision:
        await _edit(media, short, "Edited.")
    answer = await media.http.post(
        f"{TRANSCRIPTIONS}/{short['job_id']}/notes",
        json={"title": f"Mine {new_revision}", "update_existing": True},
    )
    assert (answer.status_code, code_of(answer)) == (409, "NOTE_CONTENT_CONFLICT")
    assert path.read_bytes() == content


@pytest.mark.proves("media.notes.update-front-matter")
async def test_front_matter_of_the_user_is_kept(media: MediaClient, short: dict[str, Any]) -> None:
    note = await _note(media, short, title="Tagged")
    path = _file(media, note)
    path.write_text("---\ntags: [exam]\n---\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    await _edit(media, short, "Edited.")
    await _note(media, short, 200, title="Tagged", update_existing=True)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\ntags: [exam]\n---\n")
    assert "Edited." in text


@pytest.mark.proves("media.notes.update-note-deleted", "media.notes.update-moved-note")
async def test_a_moved_note_is_found_and_a_deleted_one_is_not(
    media: MediaClient, short: dict[str, Any]
) -> None:
    note = await _note(media, short, title="Moving")
    moved = await media.http.post(
        f"/api/notes/{note['note_id']}/move", json={"folder": "elsewhere"}
    )
    assert moved.status_code == 200, moved.text
    await _edit(media, short, "Edited after the move.")
    updated = await _note(media, short, 200, title="Moving", update_existing=True)
    assert updated["note_id"] == note["note_id"]
    assert updated["file_path"].startswith("elsewhere/")
    assert "Edited after the move." in _file(media, updated).read_text(encoding="utf-8")
    assert (await media.http.delete(f"/api/notes/{note['note_id']}")).status_code in (200, 204)
    answer = await media.http.post(
        f"{TRANSCRIPTIONS}/{short['job_id']}/notes",
        json={"title": "Moving", "update_existing": True},
    )
    assert (answer.status_code, code_of(answer)) == (409, "NOTE_UPDATE_BASELINE_MISSING")


@pytest.mark.proves("media.notes.update-concurrent")
async def test_updates_at_once_write_the_note_once(
    media: MediaClient, short: dict[str, Any]
) -> None:
    note = await _note(media, short, title="Together")
    await _edit(media, short, "Edited together.")
    updates = await asyncio.gather(
        *(_note(media, short, 200, title="Together", update_existing=True) for _ in range(5))
    )
    assert {
        (update["note_id"], update["content_hash"], update["updated_at"]) for update in updates
    } == {(note["note_id"], updates[0]["content_hash"], updates[0]["updated_at"])}


@pytest.mark.proves("media.attachments.delete-referenced")
async def test_a_note_refers_to_its_recording(media: MediaClient, short: dict[str, Any]) -> None:
    note = await _note(media, short)
    answer = await media.http.delete(f"/api/media/attachments/{short['attachment_id']}")
    assert {"type": "note", "id": note["note_id"]} in answer.json()["error"]["details"][
        "references"
    ]


@pytest.mark.proves(
    "media.notes.citations-independent",
    "media.notes.source-audio",
    "media.notes.citations-after-edit",
)
async def test_a_search_hit_leads_back_into_the_recording(
    media: MediaClient, speech: dict[str, Any]
) -> None:
    note = await _note(
        media, speech, title="Cited", include_timestamps=False, include_speakers=False
    )
    path = _file(media, note)
    path.write_text(
        "My own heading paragraph.\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8"
    )
    changed = (await media.http.get(f"/api/notes/{note['note_id']}")).json()
    assert "My own heading" in changed["content"]

    async def hits() -> list[dict[str, Any]]:
        request = {
            "query": "what your country can do",
            "mode": "fts",
            "note_ids": [note["note_id"]],
            "limit": 5,
        }
        answer = await media.http.post("/api/search", json=request)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["hits"]
        return found

    (hit,) = await hits()
    segment = next(item for item in speech["segments"] if "what your country" in item["text"])
    assert (hit["start_time"], hit["end_time"]) == (segment["start_time"], segment["end_time"])
    assert hit["speaker"] is None
    content = await media.http.get(f"/api/media/attachments/{hit['source_audio']}/content")
    assert content.content == JFK.read_bytes()
