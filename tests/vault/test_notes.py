"""Creating, reading, changing, moving and deleting notes."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app_client import running_app
from tests.vault.conftest import Vault

UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.proves("vault.notes.create", "vault.files.markdown")
async def test_a_new_note_is_a_markdown_file(vault: Vault) -> None:
    note = await vault.create("操作系统", "# 死锁\n\n四个必要条件", folder="课程/计算机")
    assert note["file_path"] == "课程/计算机/操作系统.md"
    assert vault.path(note).read_text(encoding="utf-8") == "# 死锁\n\n四个必要条件"


@pytest.mark.proves("vault.notes.fields", "vault.hash.every-read")
async def test_fields(vault: Vault) -> None:
    note = await vault.create("Title", "Text", folder="a/b", tags=["x"])
    assert {
        "note_id", "title", "folder", "file_path", "content", "tags", "content_hash", "created_at", "updated_at",
    } <= note.keys()  # fmt: skip
    assert (note["folder"], note["file_path"]) == ("a/b", "a/b/Title.md")
    assert UTC.fullmatch(note["created_at"]) and UTC.fullmatch(note["updated_at"])
    (item,) = await vault.notes()
    assert item == {key: value for key, value in note.items() if key != "content"}
    assert await vault.get(note["note_id"]) == note
    moved = await vault.app.http.post(f"/api/notes/{note['note_id']}/move", json={"folder": ""})
    for answer in (
        await vault.put(note["note_id"], "x"),
        await vault.patch(note["note_id"], tags=[]),
        moved.json(),
    ):
        assert len(answer["content_hash"]) == 64


@pytest.mark.proves("vault.notes.create-fields")
async def test_what_create_takes(vault: Vault) -> None:
    note = await vault.create("x" * 200)
    assert (note["content"], note["folder"], note["tags"]) == ("", "", [])
    for body in (
        {},
        {"title": ""},
        {"title": "   "},
        {"title": "x" * 201},
        {"title": None},
        {"title": "x", "content": None},
        {"title": "x", "tags": "x"},
        {"title": "x", "content": "\0"},
        {"title": "two\nlines"},
    ):
        answer = await vault.app.http.post("/api/notes", json=body)
        assert answer.status_code == 422, body
        assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    largest = await vault.create("large", "x" * (8 * 1024 * 1024))
    assert vault.path(largest).stat().st_size == 8 * 1024 * 1024
    for content in ("x" * (8 * 1024 * 1024 + 1), "字" * (3 * 1024 * 1024)):
        answer = await vault.app.http.post("/api/notes", json={"title": "x", "content": content})
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"
    answer = await vault.app.http.put(
        f"/api/notes/{note['note_id']}", json={"content": "x" * (8 * 1024 * 1024 + 1)}
    )
    assert answer.status_code == 413
    assert len(list(vault.folder.rglob("*.md"))) == 2


ANY_CATEGORY: Any = ("L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cn")
TEXTS = [
    "",
    "中文，emoji 😀👩‍👩‍👧, trailing blanks   \n\n\n",
    "no newline at the end",
    "a\r\nb\r\n",
    "a\nb\r\nc\rd",
    "\ufeffbegins with a mark",
    "---\ntitle: x\n---\n",
    "\u2028\u0085\x0b\x1f \ufffd",
]


@pytest.mark.proves("vault.notes.create-roundtrip", "vault.hash.definition", "vault.notes.get")
@pytest.mark.parametrize("text", TEXTS)
async def test_text_is_read_back_as_it_was_written(vault: Vault, text: str) -> None:
    note = await vault.create("Note", text)
    for found in (note, await vault.get(note["note_id"])):
        assert found["content"] == text
        assert found["content_hash"] == hashlib.sha256(text.encode()).hexdigest()
    data = vault.path(note).read_bytes()
    assert data in (text.encode(), b"\xef\xbb\xbf" + text.encode())
    other = await vault.create("Other", "one line")
    assert (await vault.put(other["note_id"], text))["content"] == text
    assert (await vault.get(other["note_id"]))["content"] == text


@pytest.mark.proves("vault.notes.create-roundtrip")
@given(text=st.text(st.characters(exclude_characters="\0", categories=ANY_CATEGORY), max_size=400))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_any_text_is_read_back(vault: Vault, text: str) -> None:
    note = await vault.create("Note", text)
    assert (await vault.get(note["note_id"]))["content"] == text


@pytest.mark.proves("vault.notes.create-same-title")
async def test_two_notes_of_one_title(vault: Vault) -> None:
    first = await vault.create("Twin", "first")
    second = await vault.create("Twin", "second")
    third = await vault.create("TWIN", "third")
    assert len({note["note_id"] for note in (first, second, third)}) == 3
    # Names that differ in case alone are one name on Windows and macOS.
    assert len({note["file_path"].lower() for note in (first, second, third)}) == 3
    assert (first["title"], second["title"]) == ("Twin", "Twin")
    assert vault.path(first).read_text() == "first"
    assert vault.path(second).read_text() == "second"


@pytest.mark.proves("vault.notes.list")
async def test_pages(vault: Vault) -> None:
    for number in range(5):
        await vault.create(f"Note {number}")
    answer = await vault.app.http.get("/api/notes", params={"limit": 2, "offset": 3})
    assert [item["title"] for item in answer.json()["items"]] == ["Note 1", "Note 0"]
    assert answer.json()["page"] == {"total": 5, "limit": 2, "offset": 3}
    answer = await vault.app.http.get("/api/notes")
    assert answer.json()["page"] == {"total": 5, "limit": 50, "offset": 0}
    for limit, offset in ((0, 0), (201, 0), (-1, 0), ("x", 0), (1, -1)):
        answer = await vault.app.http.get("/api/notes", params={"limit": limit, "offset": offset})
        assert answer.status_code == 422


@pytest.mark.proves("vault.notes.list-filters")
async def test_filters_and_order(vault: Vault) -> None:
    await vault.create("banana", folder="a", tags=["Fruit"])
    await vault.create("Cherry", folder="a/b", tags=["fruit", "red"])
    await vault.create("apple", folder="ab")
    assert await vault.titles(sort="title") == ["apple", "banana", "Cherry"]
    assert await vault.titles(sort="created_at") == ["apple", "Cherry", "banana"]
    assert await vault.titles() == ["apple", "Cherry", "banana"]
    assert await vault.titles(folder="a", sort="title") == ["banana", "Cherry"]
    assert await vault.titles(folder="a/b") == ["Cherry"]
    assert await vault.titles(folder="nowhere") == []
    assert await vault.titles(tag="FRUIT", sort="title") == ["banana", "Cherry"]
    assert await vault.titles(tag="red", folder="a") == ["Cherry"]
    assert await vault.titles(title="AN") == ["banana"]
    assert await vault.titles(title="%") == []
    assert len(await vault.titles(title="", tag="", folder="", sort="")) == 3
    banana = (await vault.notes(title="banana"))[0]
    await vault.put(banana["note_id"], "changed")
    assert (await vault.titles())[0] == "banana"
    answer = await vault.app.http.get("/api/notes", params={"sort": "size"})
    assert answer.status_code == 422


@pytest.mark.proves("vault.notes.not-found")
async def test_unknown_and_trashed_notes(vault: Vault) -> None:
    note = await vault.create("Gone")
    await vault.delete(note["note_id"])
    for note_id in (note["note_id"], "note_0", "😀", "x" * 300, "a%2Fb"):
        for method, suffix, body in (
            ("GET", "", None),
            ("PUT", "", {"content": "x"}),
            ("PATCH", "", {"title": "x"}),
            ("DELETE", "", None),
            ("POST", "/move", {"folder": "x"}),
        ):
            answer = await vault.app.http.request(
                method, f"/api/notes/{note_id}{suffix}", json=body
            )
            assert answer.status_code == 404, (method, note_id)
            assert answer.json()["error"]["code"] == "RESOURCE_NOT_FOUND"
    assert not (vault.folder / "x").exists()


@pytest.mark.proves("vault.notes.put", "vault.hash.changes")
async def test_put_replaces_the_whole_text(vault: Vault) -> None:
    note = await vault.create("Title", "old", tags=["x"])
    changed = await vault.put(note["note_id"], "new")
    assert (changed["note_id"], changed["title"]) == (note["note_id"], "Title")
    assert (changed["content"], changed["tags"]) == ("new", [])
    assert vault.path(changed).read_text() == "new"
    assert changed["content_hash"] != note["content_hash"]
    restored = await vault.put(note["note_id"], note["content"])
    assert restored["content_hash"] == note["content_hash"]
    both = await vault.put(note["note_id"], "text", title="Other", tags=["z"])
    assert (both["title"], both["tags"]) == ("Other", ["z"])
    assert both["content"] == "---\ntags: [z]\n---\ntext"
    answer = await vault.app.http.put(f"/api/notes/{note['note_id']}", json={"title": "x"})
    assert answer.status_code == 422


@pytest.mark.proves("vault.notes.patch")
async def test_patch_changes_what_is_sent(vault: Vault) -> None:
    note = await vault.create("Title", "text", tags=["x"])
    before = vault.path(note).stat()
    assert await vault.patch(note["note_id"]) == note
    assert await vault.patch(note["note_id"], title="Title", tags=["x"]) == note
    after = vault.path(note).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    changed = await vault.patch(note["note_id"], content="other")
    assert (changed["title"], changed["content"], changed["tags"]) == ("Title", "other", [])


@pytest.mark.proves("vault.notes.patch-title")
async def test_a_new_title_renames_the_file(vault: Vault) -> None:
    await vault.create("Taken", "stays", folder="f")
    note = await vault.create("Old", "# Heading\n\ntext", folder="f")
    renamed = await vault.patch(note["note_id"], title="New: name?")
    assert renamed["title"] == "New: name?"
    assert (renamed["note_id"], renamed["folder"]) == (note["note_id"], "f")
    assert renamed["content"] == note["content"]
    assert not vault.path(note).exists()
    assert vault.path(renamed).read_text() == note["content"]
    renamed = await vault.patch(note["note_id"], title="Taken")
    assert renamed["title"] == "Taken"
    assert renamed["file_path"] == "f/Taken 2.md"
    assert (vault.folder / "f/Taken.md").read_text() == "stays"
    assert (await vault.get(note["note_id"]))["title"] == "Taken"


@pytest.mark.proves("vault.notes.patch-title")
async def test_a_title_is_kept_over_edits_until_the_front_matter_says_another(vault: Vault) -> None:
    note = await vault.create("Typed?", "---\ntitle: Written\n---\n# Heading\n")
    assert note["title"] == "Typed?"
    edited = await vault.put(note["note_id"], "---\ntitle: Written\n---\n# Other heading\n")
    assert edited["title"] == "Typed?"
    edited = await vault.put(note["note_id"], "---\ntitle: Rewritten\n---\n")
    assert edited["title"] == "Rewritten"


@pytest.mark.proves("vault.notes.delete", "vault.trash.moves-file", "vault.trash.not-indexed")
async def test_a_deleted_note_lies_in_the_trash(vault: Vault) -> None:
    note = await vault.create("Gone", "peculiar #tagged\r\n", folder="f")
    data = vault.path(note).read_bytes()
    assert await vault.found("peculiar")
    await vault.delete(note["note_id"])
    assert not vault.path(note).exists()
    assert (vault.folder / ".trash/Gone.md").read_bytes() == data
    assert await vault.notes() == []
    assert await vault.found("peculiar") == []
    tags = await vault.app.http.get("/api/tags")
    assert tags.json()["items"] == []
    folders = await vault.app.http.get("/api/folders")
    assert folders.json()["items"] == [{"path": "f", "name": "f", "note_count": 0}]


@pytest.mark.proves("vault.trash.same-name")
async def test_the_trash_keeps_both_of_one_name(vault: Vault) -> None:
    for text in ("first", "second"):
        note = await vault.create("Same", text)
        await vault.delete(note["note_id"])
    assert {path.read_text() for path in (vault.folder / ".trash").iterdir()} == {"first", "second"}


@pytest.mark.proves("vault.trash.restore")
async def test_a_note_comes_back_from_the_trash(vault: Vault) -> None:
    note = await vault.create("Back", "peculiar", folder="f")
    await vault.delete(note["note_id"])
    trash = (await vault.app.http.get("/api/trash")).json()
    assert [(item["note_id"], item["folder"]) for item in trash["items"]] == [
        (note["note_id"], "f")
    ]
    (vault.folder / ".trash/Back.md").rename(vault.folder / "f/Back.md")
    again = await vault.note_at("f/Back.md")
    assert (again["note_id"], again["content_hash"]) == (note["note_id"], note["content_hash"])
    assert len(await vault.found("peculiar")) == 1

    await vault.delete(note["note_id"])
    await vault.create("Back", "took its place", folder="f")
    answer = await vault.app.http.post(f"/api/trash/{note['note_id']}/restore")
    assert answer.status_code == 200
    assert answer.json()["file_path"] == "f/Back 2.md"
    assert len(await vault.found("peculiar")) == 1
    answer = await vault.app.http.post(f"/api/trash/{note['note_id']}/restore")
    assert answer.status_code == 404


@pytest.mark.proves("vault.notes.move", "vault.notes.move-missing-folder", "vault.hash.changes")
async def test_moving(vault: Vault) -> None:
    await vault.create("Note", "stays", folder="b")
    note = await vault.create("Note", "moves", folder="a")
    for folder, path in (
        ("b", "b/Note 2.md"),
        ("new/deep", "new/deep/Note 2.md"),
        ("", "Note 2.md"),
    ):
        answer = await vault.app.http.post(
            f"/api/notes/{note['note_id']}/move", json={"folder": folder}
        )
        assert answer.status_code == 200
        moved = answer.json()
        assert (moved["folder"], moved["file_path"]) == (folder, path)
        for field in ("note_id", "content", "content_hash", "title"):
            assert moved[field] == note[field]
        assert vault.path(moved).read_text() == "moves"
        assert await vault.get(note["note_id"]) == moved
    assert not vault.path(note).exists()
    assert (vault.folder / "b/Note.md").read_text() == "stays"
    answer = await vault.app.http.post(f"/api/notes/{note['note_id']}/move", json={})
    assert answer.status_code == 422


@pytest.mark.proves("vault.notes.opaque-stable-id")
async def test_an_id_is_stable_over_edits_and_restarts(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        assert app.vault is not None
        vault = Vault(app, app.vault)
        note = await vault.create("First?", "text")
        note_id = note["note_id"]
        assert "First" not in note_id
        await vault.put(note_id, "other")
        await vault.patch(note_id, title="Second?")
        await app.http.post(f"/api/notes/{note_id}/move", json={"folder": "f"})
    async with running_app(tmp_path, open_vault=False) as app:
        vault = Vault(app, tmp_path / "vault")
        found = await vault.get(note_id)
        assert (found["title"], found["folder"], found["content"]) == ("Second?", "f", "other")
        assert [note["note_id"] for note in await vault.notes()] == [note_id]


UNSAFE = [
    "aux", "T.N.T.", "?*", "a/b\\c", "trailing  ", "CON.txt", "com1", ".hidden", "..", 'a:b|c<d>"e"', "名字？*：",
    "/etc/passwd", "x" * 200, "字" * 200, "lpt9.", " ", "\u200f\u202e", "e\u0301" * 100, "~", "-", "#", "a\u2028b",
]  # fmt: skip


@pytest.mark.proves("vault.notes.unsafe-names")
@pytest.mark.parametrize("title", [title for title in UNSAFE if title.strip()])
async def test_unsafe_titles(vault: Vault, title: str) -> None:
    note = await vault.create(title, "text")
    assert note["title"] == title
    assert (await vault.get(note["note_id"]))["title"] == title
    (path,) = vault.folder.rglob("*.md")
    assert path.parent == vault.folder
    name = path.name
    assert not set(name) & set('<>:"/\\|?*') and not name.startswith(".")
    assert len(name.encode()) <= 240
    stem = name.removesuffix(".md")
    assert stem == stem.rstrip(". ") and stem
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)", stem.split(".")[0])
