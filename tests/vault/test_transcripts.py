"""Notes that were made from a recording."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.vault.schemas import TranscriptOrigin, TranscriptPassage
from tests.app_client import running_app
from tests.vault.conftest import Vault

PASSAGES = (
    TranscriptPassage("大家好，今天讲死锁。", 0.0, 3.2, "Speaker 1"),
    TranscriptPassage("Yes.", 3.2, 4.0, "Speaker 2"),
    TranscriptPassage("死锁有四个必要条件。", 4.0, 9.5, "Speaker 1"),
    TranscriptPassage("Yes.", 9.5, 10.0, "Speaker 2"),
    TranscriptPassage("下课。", 10.0, 11.0, None),
)
ORIGIN = TranscriptOrigin("transcription_1", 3, "attachment_1", PASSAGES)
CONTENT = "# 讲座\n\n" + "\n\n".join(
    f"**[00:0{number}]** {passage.text}" for number, passage in enumerate(PASSAGES)
)


async def spans(vault: Vault, note_id: str, query: str) -> list[tuple[Any, ...]]:
    """Return the audio fields of the hits in a note."""
    hits = await vault.found(query, note_ids=[note_id])
    return sorted(
        (hit["source_audio"], hit["start_time"], hit["end_time"], hit["speaker"]) for hit in hits
    )


@pytest.mark.proves(
    "vault.transcript-note.source", "retrieval.blocks.transcript", "retrieval.search.hit-extra"
)
async def test_blocks_keep_their_place_in_the_recording(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        assert app.vault is not None
        vault = Vault(app, app.vault)
        made = await app.services.vault.create_note("讲座", CONTENT, "课程", transcript=ORIGIN)
        note_id = made.note_id
        note = await vault.get(note_id)
        assert note["transcript"] == {"job_id": "transcription_1", "revision": 3}
        assert (await vault.notes())[0]["transcript"] == note["transcript"]
        condition = [("attachment_1", 4.0, 9.5, "Speaker 1")]
        assert await spans(vault, note_id, "必要条件") == condition
        assert await spans(vault, note_id, "yes") == [
            ("attachment_1", 3.2, 4.0, "Speaker 2"),
            ("attachment_1", 9.5, 10.0, "Speaker 2"),
        ]
        assert await spans(vault, note_id, "下课") == [("attachment_1", 10.0, 11.0, None)]

        edited = CONTENT.replace("下课。", "再见。").replace("# 讲座", "# 讲座\n\n附言一段 remark")
        await vault.put(note_id, edited)
        await app.http.post("/api/index/rebuild", json={"scope": "fts"})
        assert await spans(vault, note_id, "必要条件") == condition
        assert await spans(vault, note_id, "再见") == [("attachment_1", None, None, None)]
        assert await spans(vault, note_id, "remark") == [("attachment_1", None, None, None)]
    async with running_app(tmp_path) as app:
        vault = Vault(app, tmp_path / "vault")
        await app.http.patch(f"/api/notes/{note_id}", json={"title": "Renamed"})
        assert await spans(vault, note_id, "必要条件") == condition
        (tmp_path / "vault/课程/Renamed.md").rename(tmp_path / "vault/Away.md")
        await vault.note_at("Away.md")
        assert await spans(vault, note_id, "必要条件") == condition


async def test_a_new_revision_takes_the_place_of_the_old(vault: Vault) -> None:
    service = vault.app.services.vault
    note = await service.create_note("讲座", CONTENT, transcript=ORIGIN)
    passages = (TranscriptPassage("更正后的文字。", 1.0, 2.0, "张三"),)
    newer = TranscriptOrigin("transcription_1", 4, "attachment_1", passages)
    updated = await service.update_note(note.note_id, content="更正后的文字。", transcript=newer)
    assert updated.transcript is not None
    assert updated.transcript.revision == 4
    assert await spans(vault, note.note_id, "更正") == [("attachment_1", 1.0, 2.0, "张三")]


async def test_ordinary_notes_have_no_place_in_a_recording(vault: Vault) -> None:
    note = await vault.create("Note", "plain text")
    assert note["transcript"] is None
    assert await spans(vault, note["note_id"], "plain") == [(None, None, None, None)]
