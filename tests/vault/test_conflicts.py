"""Guarded writes."""

import asyncio
import hashlib
from typing import Any

import pytest

from tests.vault.conftest import Vault

STALE = hashlib.sha256(b"never").hexdigest()


async def _send(
    vault: Vault, kind: str, note_id: str, expected: str | None
) -> tuple[int, dict[str, Any]]:
    path = f"/api/notes/{note_id}"
    guard = {} if expected is None else {"expected_content_hash": expected}
    if kind == "put":
        answer = await vault.app.http.put(path, json={"content": "new", **guard})
    elif kind == "patch":
        answer = await vault.app.http.patch(path, json={"title": "New", **guard})
    elif kind == "move":
        answer = await vault.app.http.post(f"{path}/move", json={"folder": "f", **guard})
    else:
        answer = await vault.app.http.delete(path, params=guard)
    return answer.status_code, answer.json() if answer.content else {}


@pytest.mark.proves(
    "vault.conflict.expected-hash", "vault.conflict.every-write", "vault.conflict.details"
)
@pytest.mark.parametrize("kind", ["put", "patch", "move", "delete"])
async def test_a_stale_hash_is_refused_and_the_current_one_accepted(
    vault: Vault, kind: str
) -> None:
    note = await vault.create("Note", "secret text")
    status, body = await _send(vault, kind, note["note_id"], STALE)
    assert (status, body["error"]["code"]) == (409, "NOTE_CONTENT_CONFLICT")
    assert body["error"]["details"] == {"content_hash": note["content_hash"]}
    assert await vault.get(note["note_id"]) == note
    assert vault.path(note).read_text() == "secret text"
    status, _ = await _send(vault, kind, note["note_id"], note["content_hash"].upper())
    assert status in (200, 204)


@pytest.mark.proves("vault.conflict.optional")
@pytest.mark.parametrize("kind", ["put", "patch", "move", "delete"])
async def test_without_a_hash_a_write_goes_through(vault: Vault, kind: str) -> None:
    note = await vault.create("Note", "text")
    vault.path(note).write_text("changed outside")
    status, _ = await _send(vault, kind, note["note_id"], None)
    assert status in (200, 204)


@pytest.mark.proves("vault.conflict.malformed-hash")
@pytest.mark.parametrize("expected", ["", "x", "😀", "0" * 63, "\n"])
async def test_what_is_no_hash_matches_nothing(vault: Vault, expected: str) -> None:
    note = await vault.create("Note", "text")
    for kind in ("put", "patch", "move", "delete"):
        status, body = await _send(vault, kind, note["note_id"], expected)
        assert (status, body["error"]["code"]) == (409, "NOTE_CONTENT_CONFLICT")
    assert await vault.get(note["note_id"]) == note


@pytest.mark.proves("vault.conflict.external-edit")
@pytest.mark.parametrize("kind", ["put", "patch", "move", "delete"])
async def test_an_edit_of_another_program_is_kept(vault: Vault, kind: str) -> None:
    note = await vault.create("Note", "text")
    vault.path(note).write_text("edited elsewhere")
    status, body = await _send(vault, kind, note["note_id"], note["content_hash"])
    assert (status, body["error"]["code"]) == (409, "NOTE_CONTENT_CONFLICT")
    assert vault.path(note).read_text() == "edited elsewhere"
    again = await vault.get(note["note_id"])
    assert again["content"] == "edited elsewhere"
    status, _ = await _send(vault, kind, note["note_id"], again["content_hash"])
    assert status in (200, 204)


@pytest.mark.proves("vault.conflict.external-edit")
async def test_an_edit_of_the_same_size_within_the_same_moment_is_seen(vault: Vault) -> None:
    import os

    note = await vault.create("Note", "aaaa")
    info = vault.path(note).stat()
    vault.path(note).write_text("bbbb")
    os.utime(vault.path(note), ns=(info.st_atime_ns, info.st_mtime_ns))
    found = await vault.get(note["note_id"])
    assert (found["content"], found["content_hash"]) == (
        "bbbb",
        hashlib.sha256(b"bbbb").hexdigest(),
    )
    status, _ = await _send(vault, "put", note["note_id"], note["content_hash"])
    assert status == 409


@pytest.mark.proves("vault.conflict.concurrent")
async def test_of_two_writers_with_one_hash_one_wins(vault: Vault) -> None:
    note = await vault.create("Note", "0")
    for turn in range(1, 6):
        writes = [
            vault.app.http.put(
                f"/api/notes/{note['note_id']}",
                json={"content": f"{turn} {writer}", "expected_content_hash": note["content_hash"]},
            )
            for writer in range(8)
        ]
        answers = await asyncio.gather(*writes)
        winners = [answer for answer in answers if answer.status_code == 200]
        assert len(winners) == 1
        assert {answer.status_code for answer in answers} == {200, 409}
        note = await vault.get(note["note_id"])
        assert note["content"] == winners[0].json()["content"]


async def test_writers_without_hashes_leave_one_whole_text(vault: Vault) -> None:
    note = await vault.create("Note")
    texts = [f"{number}" * 20_000 for number in range(8)]
    await asyncio.gather(*(vault.put(note["note_id"], text) for text in texts))
    found = await vault.get(note["note_id"])
    assert found["content"] in texts
    assert vault.path(note).read_text() == found["content"]
    assert [path.name for path in vault.folder.iterdir()] == ["Note.md"]
