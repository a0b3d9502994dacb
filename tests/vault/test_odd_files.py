"""Files as other programs and other systems leave them: each is a note, or is skipped with the reason."""

import os
import unicodedata
from pathlib import Path

import pytest

from tests.app_client import running_app
from tests.vault.conftest import Vault, eventually

LIMIT = 8 * 1024 * 1024
# Names that Linux takes and others don't, or that look alike.
NAMES = [
    "con.md",
    "what?.md",
    'a:b "c" <d>|*.md',
    " blanks .md",
    "dots...md",
    "back\\slash.md",
    "new\nline.md",
    "😀 emoji.md",
    "cafe\u0301.md",
    "caf\u00e9.md",
    "字" * 84 + ".md",
    "-rf.md",
    "%2e%2e.md",
    "note (conflicted copy 2026-01-02).md",
    "note.sync-conflict-20260102-030405-ABCDEFG.md",
]


@pytest.mark.skipif(os.name == "nt", reason="Windows doesn't take these names")
async def test_names_of_other_systems(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        (folder / name).write_text(f"word{number}x", encoding="utf-8")
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) == len(NAMES)
    async with running_app(tmp_path, models_dirs=()) as app:
        vault = Vault(app, folder)
        await vault.scanned()
        notes = {note["file_path"]: note for note in await vault.notes(limit=100)}
        assert set(notes) == kept
        assert len({note["note_id"] for note in notes.values()}) == len(NAMES)
        for number, name in enumerate(NAMES):
            note = notes[name]
            (hit,) = await vault.found(f"word{number}x")
            assert (hit["note_id"], hit["file_path"]) == (note["note_id"], name)
            # An edit goes into this very file, and renames nothing.
            written = await vault.put(note["note_id"], f"word{number}x again")
            assert written["file_path"] == name
            assert (folder / name).read_text(encoding="utf-8") == f"word{number}x again"
        assert {path.name for path in folder.iterdir()} == kept
        # Names that other systems hold for the same don't meet in one folder.
        for note in notes.values():
            moved = await vault.app.http.post(
                f"/api/notes/{note['note_id']}/move", json={"folder": "all"}
            )
            assert moved.status_code == 200, moved.text
        found = list((folder / "all").iterdir())
        alike = {unicodedata.normalize("NFC", path.name).casefold() for path in found}
        assert len(found) == len(alike) == len(NAMES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
async def test_what_is_no_file_is_not_opened(vault: Vault) -> None:
    os.mkfifo(vault.folder / "pipe.md")
    vault.write("note.md", "text")
    note = await vault.note_at("note.md")

    async def is_skipped() -> bool:
        return await vault.skipped() == [("pipe.md", "not_a_file")]

    await eventually(is_skipped)
    # A note whose file becomes a pipe: nobody waits for somebody who writes into it.
    vault.path(note).unlink()
    os.mkfifo(vault.path(note))
    answer = await vault.app.http.get(f"/api/notes/{note['note_id']}")
    assert answer.status_code == 404
    answer = await vault.app.http.put(f"/api/notes/{note['note_id']}", json={"content": "x"})
    assert answer.status_code == 404


async def test_the_limit_of_a_file(vault: Vault) -> None:
    line = b"a line of text that is long enough\n"
    text = line * (LIMIT // len(line)) + b"\n" * (LIMIT % len(line))
    assert len(text) == LIMIT
    vault.write("just.md", text)
    vault.write("over.md", text + b"\n")
    vault.write("utf-16.md", "Text".encode("utf-16"))
    vault.write("late.md", b"x" * 100_000 + b"\0" + b"x")
    note = await vault.note_at("just.md")
    assert len((await vault.get(note["note_id"]))["content"]) == LIMIT

    async def are_skipped() -> bool:
        return await vault.skipped() == [
            ("late.md", "binary"),
            ("over.md", "too_large"),
            ("utf-16.md", "binary"),
        ]

    # Files that came after the first look through the vault are taken in batch by batch.
    await eventually(are_skipped)
    # A note that grows over the limit goes, and comes back as the same note.
    vault.path(note).write_bytes(text + b"more")

    async def is_gone() -> bool:
        return ("just.md", "too_large") in await vault.skipped()

    await eventually(is_gone)
    assert await vault.titles() == []
    vault.path(note).write_bytes(b"short again")
    assert (await vault.note_at("just.md"))["note_id"] == note["note_id"]
