"""What other programs do in the vault is noticed, and notes stay the same notes."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import running_app
from tests.vault.conftest import Vault, eventually


async def until_found(vault: Vault, query: str, count: int) -> None:
    """Wait until a search has so many hits."""

    async def is_so() -> bool:
        return len(await vault.found(query)) == count

    await eventually(is_so)


@pytest.mark.proves("vault.files.external-change")
async def test_an_edit_is_seen_by_the_next_read_and_indexed_again(vault: Vault) -> None:
    note = await vault.create("Note", "formerly")
    vault.path(note).write_text("afterwards #tag")
    found = await vault.get(note["note_id"])
    assert (found["content"], found["tags"]) == ("afterwards #tag", ["tag"])
    assert found["content_hash"] != note["content_hash"]
    assert found["updated_at"] >= note["updated_at"]
    await until_found(vault, "afterwards", 1)
    await until_found(vault, "formerly", 0)
    (item,) = await vault.notes()
    assert (item["content_hash"], item["tags"]) == (found["content_hash"], ["tag"])


async def test_a_rename_keeps_the_id(vault: Vault) -> None:
    note = await vault.create("Old name", "peculiar text")
    vault.path(note).rename(vault.folder / "New name.md")
    found = await vault.note_at("New name.md")
    assert found["note_id"] == note["note_id"]
    assert found["title"] == "New name"
    assert (await vault.get(note["note_id"]))["file_path"] == "New name.md"
    await until_found(vault, "peculiar", 1)


async def test_a_read_finds_a_file_that_was_just_moved(vault: Vault) -> None:
    note = await vault.create("Note", "text")
    (vault.folder / "deep/er").mkdir(parents=True)
    vault.path(note).rename(vault.folder / "deep/er/Note.md")
    assert (await vault.get(note["note_id"]))["folder"] == "deep/er"


async def test_a_renamed_folder_keeps_the_ids_of_its_notes(vault: Vault) -> None:
    notes = [
        await vault.create(f"n{number}", f"text {number}", folder="a/b") for number in range(5)
    ]
    (vault.folder / "a").rename(vault.folder / "z")
    for note in notes:
        found = await vault.note_at(f"z/b/{note['title']}.md")
        assert found["note_id"] == note["note_id"]
    assert len(await vault.notes()) == 5


async def test_a_note_that_was_moved_and_edited_is_known_by_its_front_matter(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "vault"
    async with running_app(tmp_path) as app:
        vault = Vault(app, folder)
        note = await vault.create("Note", "---\nuid: 4711\ncreated: 2024-05-01\n---\nold text")
        other = await vault.create("Other", "---\ntags: []\n---\nfirst")
    (folder / "Note.md").unlink()
    (folder / "Other.md").unlink()
    (folder / "Moved.md").write_text("---\nuid: 4711\ncreated: 2024-05-01\n---\nnew text")
    async with running_app(tmp_path) as app:
        vault = Vault(app, folder)
        await vault.scanned()
        (found,) = await vault.notes()
        assert (found["note_id"], found["file_path"]) == (note["note_id"], "Moved.md")
        assert other["note_id"] != note["note_id"]


async def test_a_conflict_copy_is_another_note(vault: Vault) -> None:
    note = await vault.create("Note", "same text")
    shutil.copy(vault.path(note), vault.folder / "Note (conflict).md")
    copy = await vault.note_at("Note (conflict).md")
    assert copy["note_id"] != note["note_id"]
    vault.path(note).write_text("newer text")
    await until_found(vault, "newer", 1)
    assert (await vault.get(note["note_id"]))["content"] == "newer text"
    assert (await vault.get(copy["note_id"]))["content"] == "same text"


async def test_saving_by_replacing_the_file_keeps_the_id(vault: Vault) -> None:
    note = await vault.create("Note", "one")
    for number in range(5):
        temporary = vault.write("Note.md.part", f"edition {number}")
        temporary.replace(vault.path(note))
        await until_found(vault, f"edition {number}", 1)
    assert [item["note_id"] for item in await vault.notes()] == [note["note_id"]]


async def test_saving_with_a_backup_keeps_the_id(vault: Vault) -> None:
    note = await vault.create("Note", "one")
    vault.path(note).rename(vault.folder / "Note.md~")
    vault.write("Note.md", "written anew")
    await until_found(vault, "anew", 1)
    assert [item["note_id"] for item in await vault.notes()] == [note["note_id"]]


async def test_a_half_written_file_is_not_indexed_as_empty(vault: Vault) -> None:
    note = await vault.create("Note", "steadfast")
    path = vault.path(note)
    with path.open("wb") as file:
        # The watcher sees the empty file; the writer goes on some time later.
        await asyncio.sleep(0.6)
        assert len(await vault.found("steadfast")) == 1
        file.write("steadfast 中".encode()[:-1])
        file.flush()
        await asyncio.sleep(0.4)
        assert len(await vault.found("steadfast")) == 1
        file.write("中".encode()[-1:] + b" completed")
    await until_found(vault, "completed", 1)
    assert [item["note_id"] for item in await vault.notes()] == [note["note_id"]]
    # One that stays empty is empty in the end.
    path.write_bytes(b"")
    await until_found(vault, "completed", 0)
    assert (await vault.get(note["note_id"]))["content"] == ""


async def test_deleting_and_bringing_back_keeps_the_id(vault: Vault) -> None:
    note = await vault.create("Note", "versioned text")
    vault.path(note).unlink()
    await until_found(vault, "versioned", 0)
    assert await vault.notes() == []
    vault.write("Note.md", "another branch's text")
    found = await vault.note_at("Note.md")
    assert found["note_id"] == note["note_id"]


async def test_changes_while_the_app_was_closed(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    async with running_app(tmp_path) as app:
        vault = Vault(app, folder)
        edited = await vault.create("Edited", "early words", tags=["x"])
        moved = await vault.create("Moved", "travelling text")
        deleted = await vault.create("Deleted", "vanishing text")
    (folder / "Edited.md").write_text("late words")
    (folder / "sub").mkdir()
    (folder / "Moved.md").rename(folder / "sub/Renamed.md")
    (folder / "Deleted.md").unlink()
    (folder / "Added.md").write_text("fresh text")
    async with running_app(tmp_path) as app:
        vault = Vault(app, folder)
        await vault.scanned()
        assert await vault.titles(sort="title") == ["Added", "Edited", "Renamed"]
        assert (await vault.get(edited["note_id"]))["content"] == "late words"
        assert (await vault.get(moved["note_id"]))["file_path"] == "sub/Renamed.md"
        answer = await app.http.get(f"/api/notes/{deleted['note_id']}")
        assert answer.status_code == 404
        for query, count in (
            ("early", 0),
            ("late", 1),
            ("travelling", 1),
            ("vanishing", 0),
            ("fresh", 1),
        ):
            assert len(await vault.found(query)) == count, query


async def test_a_vault_folder_that_goes_away_loses_no_note(vault: Vault) -> None:
    note = await vault.create("Note", "steadfast")
    away = vault.folder.with_name("away")
    vault.folder.rename(away)
    answer = await vault.app.http.post("/api/notes", json={"title": "x"})
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "VAULT_UNAVAILABLE"

    async def is_unavailable() -> bool:
        return (await vault.state())["state"] == "unavailable"

    await eventually(is_unavailable)
    away.rename(vault.folder)
    await vault.scanned()
    assert (await vault.get(note["note_id"]))["content"] == "steadfast"
    assert len(await vault.found("steadfast")) == 1


async def test_an_unreadable_file_is_skipped(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    # No mode bits keep the tests' user out where they run as root.
    real_open = os.open

    def refuse(path: Any, *args: Any) -> int:
        if str(path).endswith("locked.md"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *args)

    monkeypatch.setattr(os, "open", refuse)
    vault.write("locked.md", "text")

    async def is_skipped() -> bool:
        return await vault.skipped() == [("locked.md", "unreadable")]

    await eventually(is_skipped)


async def test_changes_are_found_by_polling_where_no_events_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise OSError("inotify watch limit reached")

    monkeypatch.setattr("watchfiles.watch", unavailable)
    async with running_app(tmp_path) as app:
        assert app.vault is not None
        vault = Vault(app, app.vault)

        async def is_polling() -> bool:
            return (await vault.state())["watching"] == "polling"

        await eventually(is_polling)
        vault.write("polled.md", "found without events")
        await until_found(vault, "events", 1)
