"""What stands in the files: bytes are kept, and nothing outside the vault is touched."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import RunningApp, running_app
from tests.retrieval.models.real_model import OWN, lay
from tests.vault.conftest import Vault, eventually

BOM = b"\xef\xbb\xbf"


@pytest.mark.proves("vault.files.markdown", "vault.files.external-change")
async def test_a_file_of_another_program_becomes_a_note(vault: Vault) -> None:
    vault.write("课程/外部.md", "# 标题\n\nperipatetic\n")
    note = await vault.note_at("课程/外部.md")
    assert (note["title"], note["folder"]) == ("标题", "课程")
    assert (await vault.get(note["note_id"]))["content"] == "# 标题\n\nperipatetic\n"
    assert len(await vault.found("peripatetic")) == 1


@pytest.mark.proves("vault.files.front-matter-optional")
async def test_a_front_matter_comes_and_goes_with_the_tags(vault: Vault) -> None:
    note = await vault.create("Plain", "text\n")
    assert vault.path(note).read_text() == "text\n"
    await vault.patch(note["note_id"], tags=["one", "two words", "1"])
    assert vault.path(note).read_text() == '---\ntags: [one, "two words", "1"]\n---\ntext\n'
    await vault.patch(note["note_id"], tags=[])
    assert vault.path(note).read_text() == "text\n"


@pytest.mark.proves("vault.files.front-matter-read")
@pytest.mark.parametrize(
    ("text", "title", "tags"),
    [
        ("---\ntitle: From matter\ntags: [a, B c]\n---\n# Heading\n", "From matter", ["a", "B c"]),
        ("---\ntags:\n- one\n- two\n---\n# Heading **bold** `code`\n", "Heading bold code", ["one", "two"]),
        ("---\ntags: one, two\n---\ntext\n", "file", ["one", "two"]),
        ("---\ntags: '#one #two'\n---\ntext\n", "file", ["one", "two"]),
        ("---\ntitle: 2024-01-01\ntags: [2024, true]\n---\n", "2024-01-01", ["2024", "true"]),
        ("---\ntitle:\ntags:\n---\ntext\n", "file", []),
        ("---\n---\ntext\n", "file", []),
        ("text\n\nSetext heading\n===\n", "Setext heading", []),
        ("```\n# no heading\n```\n\n    # code\n\n## Real\n", "Real", []),
        ("no heading", "file", []),
        ("", "file", []),
        ("\n---\ntitle: no front matter\n---\n", "title: no front matter", []),
    ],
)  # fmt: skip
async def test_title_and_tags_of_a_file(
    vault: Vault, text: str, title: str, tags: list[str]
) -> None:
    vault.write("file.md", text)
    note = await vault.note_at("file.md")
    assert (note["title"], note["tags"]) == (title, tags)


BROKEN = [
    "---\ntags: [a\n---\ntext\n",
    "---\n- a\n- list\n---\ntext\n",
    "---\nnever closed\n",
    "---\na: *unknown\n---\n",
    "---\n" + "[" * 3000 + "\n---\n",
    "---\n? [complex]\n: key\n---\n",
    "---\n\tx: tab\n---\n",
]


@pytest.mark.proves("vault.files.front-matter-broken")
@pytest.mark.parametrize("text", BROKEN)
async def test_a_broken_front_matter_is_text(vault: Vault, text: str) -> None:
    vault.write("broken.md", text)
    note = await vault.note_at("broken.md")
    assert (await vault.get(note["note_id"]))["content"] == text
    changed = await vault.patch(note["note_id"], tags=["kept"])
    assert "kept" in changed["tags"]
    assert changed["content"] == f"---\ntags: [kept]\n---\n{text}"
    back = await vault.patch(note["note_id"], tags=[])
    assert back["content"] == text


@pytest.mark.proves("vault.files.preserve-bytes", "vault.notes.patch-tags")
async def test_writing_keeps_what_is_not_understood(vault: Vault) -> None:
    matter = (
        "---\r\n# remark\r\naliases: [x,  y]\r\ntags: [old] # why\r\nnested:\r\n  k: 'v'\r\n---\r\n"
    )
    body = "中文 line\r\n\r\nother line  \r\n"
    path = vault.write("windows.md", BOM + (matter + body).encode())
    note = await vault.note_at("windows.md")
    assert note["tags"] == ["old"]
    await vault.patch(note["note_id"], tags=["new", "more"])
    assert path.read_bytes() == BOM + (matter.replace("[old]", "[new, more]") + body).encode()
    await vault.put(note["note_id"], "first\nsecond\n")
    assert path.read_bytes() == BOM + b"first\r\nsecond\r\n"
    await vault.patch(note["note_id"], title="Renamed")
    assert (vault.folder / "Renamed.md").read_bytes() == BOM + b"first\r\nsecond\r\n"
    await vault.patch(note["note_id"], tags=["t"])
    assert (vault.folder / "Renamed.md").read_bytes() == (
        BOM + b"---\r\ntags: [t]\r\n---\r\nfirst\r\nsecond\r\n"
    )


@pytest.mark.proves("vault.notes.patch-tags", "vault.files.preserve-bytes")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\ntags:\n  - a\n  - b\n\nother: 1\n---\nx", "---\ntags:\n  - new\n\nother: 1\n---\nx"),
        ("---\ntags:\n- a\nother: 1\n---\nx", "---\ntags:\n- new\nother: 1\n---\nx"),
        ("---\ntags: a b\nother: 1\n---\n", "---\ntags: [new]\nother: 1\n---\n"),
        ("---\ntags:\nother: 1\n---\n", "---\ntags: [new]\nother: 1\n---\n"),
        ("---\ntags: []\n---\n", "---\ntags: [new]\n---\n"),
        ("---\nother: |\n  block\n  text\n---\nx", "---\nother: |\n  block\n  text\ntags: [new]\n---\nx"),
        ("---\n{tags: [a], b: 1}\n---\n", "---\n{tags: [new], b: 1}\n---\n"),
        ("---\n{b: 1}\n---\n", "---\n{tags: [new], b: 1}\n---\n"),
        ("---\n---\nx", "---\ntags: [new]\n---\nx"),
        ("---\na: 1\n...\nx", "---\na: 1\ntags: [new]\n...\nx"),
        ('---\n中文: 值 # 注\n"tags": [a] # 注\n---\n', '---\n中文: 值 # 注\n"tags": [new] # 注\n---\n'),
    ],
)  # fmt: skip
async def test_tags_are_written_in_place(vault: Vault, before: str, after: str) -> None:
    path = vault.write("note.md", before)
    note = await vault.note_at("note.md")
    changed = await vault.patch(note["note_id"], tags=["new"])
    assert path.read_bytes().decode() == after
    assert changed["tags"] == ["new"]


@pytest.mark.proves("vault.files.preserve-bytes")
async def test_opening_a_vault_changes_nothing(tmp_path: Path) -> None:
    """A vault of another program is taken in, indexed with a real model, searched and closed, twice."""
    lay(tmp_path / "models/minilm", embedding=OWN)
    folder = tmp_path / "vault"
    folder.mkdir()
    contents = {
        "a.md": BOM + b"---\r\ntitle: x\r\n---\r\n# a\r\n",
        "sub/b.md": b"no newline",
        "sub/c.md": b"",
        "sub/mixed.md": b"one\r\ntwo\nthree\rfour",
        "sub/broken.md": b"---\ntags: [a, b\n---\ntext #tag",
        "daily/2024-05-01.md": "# 日记\n\n- [ ] 任务 #待办\n".encode(),
        ".obsidian/app.json": b"{}",
        ".obsidian/workspace.json": b'{"main": {}}',
        ".trash/old.md": b"old",
        ".git/HEAD": b"ref: refs/heads/main\n",
        "picture.png": b"\x89PNG",
        "binary.md": b"\xff\xfe\x00\x01",
    }
    for name, data in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    before = _state(folder)
    for _ in range(2):
        async with running_app(tmp_path, models_dirs=(tmp_path / "models",)) as app:
            vault = Vault(app, folder)
            await vault.scanned()
            notes = await vault.notes()
            assert len(notes) == 6
            await app.http.post("/api/index/rebuild", json={"scope": "all"})

            async def is_built(app: RunningApp = app) -> bool:
                state = (await app.http.get("/api/index/status")).json()
                assert state["error_message"] is None
                return bool(state["status"] == "idle" and state["vector_index"])

            await eventually(is_built)
            for mode in ("fts", "vector", "hybrid"):
                answer = await app.http.post("/api/search", json={"query": "text", "mode": mode})
                assert answer.json()["hits"]
            for note in notes:
                await vault.get(note["note_id"])
            # Writes that change nothing are none.
            unchanged = await vault.get(notes[0]["note_id"])
            await vault.put(notes[0]["note_id"], unchanged["content"])
            await vault.patch(notes[1]["note_id"])
        assert _state(folder) == before


def _state(folder: Path) -> dict[str, tuple[tuple[int, int], bytes | None]]:
    """Return time, mode and content of everything in a folder."""
    return {
        str(path.relative_to(folder)): (
            (path.stat().st_mtime_ns, path.stat().st_mode),
            path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


BAD_FOLDERS = [
    "/etc", "C:/x", "C:x", "c:\\x", "a\\b", "..", "a/../b", "../x", "a/..", "x\0y", "a//b", "/", "~/x", ".trash",
    "a/.hidden", "x" * 2000, "a/ /b", "//server/share", "\\\\server\\share", "a\nb", "字" * 100,
]  # fmt: skip


@pytest.mark.proves("vault.files.relative-paths-only")
@pytest.mark.parametrize("folder", BAD_FOLDERS)
async def test_folders_outside_are_refused(vault: Vault, folder: str) -> None:
    note = await vault.create("Note")
    before = _state(vault.folder.parent)
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/api/notes", {"json": {"title": "x", "folder": folder}}),
        ("POST", f"/api/notes/{note['note_id']}/move", {"json": {"folder": folder}}),
        ("GET", "/api/notes", {"params": {"folder": folder}}),
        ("POST", "/api/search", {"json": {"query": "x", "mode": "fts", "folder": folder}}),
    ]
    for method, path, options in requests:
        answer = await vault.app.http.request(method, path, **options)
        assert answer.status_code == 422, (method, path)
        assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    after = {path: data for path, (_, data) in _state(vault.folder).items()}
    assert after == {path.removeprefix("vault/"): data for path, (_, data) in before.items() if path.startswith("vault/")}  # fmt: skip


async def test_folders_get_safe_names_and_existing_ones_are_used_as_they_are(vault: Vault) -> None:
    note = await vault.create("Note", folder="aux/what?")
    assert note["folder"] == "_aux/what-"
    (vault.folder / "Cafe\u0301").mkdir()
    note = await vault.create("Note", folder="Caf\u00e9")
    assert note["folder"] == "Cafe\u0301"
    assert await vault.titles(folder="Caf\u00e9") == ["Note"]


@pytest.mark.skipif(os.name == "nt", reason="making symlinks needs a privilege on Windows")
@pytest.mark.proves("vault.files.no-symlink-escape")
async def test_symlinks_are_not_followed(vault: Vault, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("xylophone secret")
    (vault.folder / "file.md").symlink_to(outside / "secret.md")
    (vault.folder / "folder").symlink_to(outside)
    (vault.folder / "broken.md").symlink_to("nowhere")
    vault.write("real.md", "real")
    await vault.note_at("real.md")
    await vault.scanned()
    assert await vault.titles() == ["real"]
    assert await vault.found("xylophone") == []
    skipped = (await vault.app.http.get("/api/vault/skipped")).json()
    assert [(item["file_path"], item["reason"]) for item in skipped["items"]] == [
        ("broken.md", "symlink"), ("file.md", "symlink"), ("folder", "symlink"),
    ]  # fmt: skip
    folders = (await vault.app.http.get("/api/folders")).json()
    assert folders["items"] == []
    for body in ({"title": "x", "folder": "folder"}, {"title": "x", "folder": "folder/sub"}):
        answer = await vault.app.http.post("/api/notes", json=body)
        assert answer.status_code == 422
    # A note whose file was replaced by a link is not written through it.
    note = await vault.create("Victim", "text")
    vault.path(note).unlink()
    vault.path(note).symlink_to(outside / "secret.md")
    answer = await vault.app.http.put(f"/api/notes/{note['note_id']}", json={"content": "hacked"})
    assert answer.status_code == 404
    assert {path.name: path.read_text() for path in outside.iterdir()} == {
        "secret.md": "xylophone secret"
    }


async def test_what_is_no_note_is_skipped_with_the_reason(vault: Vault) -> None:
    vault.write("binary.md", b"\x00\x01")
    vault.write("latin.md", "é".encode("latin-1"))
    vault.write("large.md", b"x" * (8 * 1024 * 1024 + 1))
    (vault.folder / "folder.md").mkdir()
    vault.write("folder.md/inner.md", "inner")
    vault.write("UPPER.MD", "upper")
    vault.write("text.txt", "text")
    await vault.note_at("UPPER.MD")
    await vault.note_at("folder.md/inner.md")
    await vault.scanned()
    skipped = (await vault.app.http.get("/api/vault/skipped")).json()
    assert [(item["file_path"], item["reason"], item["size"]) for item in skipped["items"]] == [
        ("binary.md", "binary", 2),
        ("large.md", "too_large", 8 * 1024 * 1024 + 1),
        ("latin.md", "binary", 1),
    ]
    vault.write("latin.md", "é")
    await vault.note_at("latin.md")
    (vault.folder / "large.md").unlink()
    await vault.note_at("latin.md")

    async def one_is_left() -> bool:
        return await vault.skipped() == [("binary.md", "binary")]

    await eventually(one_is_left)


@pytest.mark.proves("vault.files.no-absolute-path-out")
async def test_no_answer_shows_where_the_vault_lies(vault: Vault, tmp_path: Path) -> None:
    note = await vault.create("Note", "text", folder="f", tags=["t"])
    http = vault.app.http
    answers = [
        await http.get("/api/notes"),
        await http.get(f"/api/notes/{note['note_id']}"),
        await http.get("/api/folders"),
        await http.get("/api/tags"),
        await http.get("/api/vault"),
        await http.get("/api/vault/skipped"),
        await http.get("/api/index/status"),
        await http.post("/api/search", json={"query": "text", "mode": "fts"}),
        await http.post("/api/notes", json={"title": "x", "folder": str(tmp_path)}),
        await http.get("/api/notes/nothing"),
        await http.put(f"/api/notes/{note['note_id']}", json={"content": "x", "expected_content_hash": "y"}),
    ]  # fmt: skip
    (vault.folder / "f").rename(tmp_path / "elsewhere")
    answers.append(await http.get(f"/api/notes/{note['note_id']}"))
    answers.append(await http.delete(f"/api/notes/{note['note_id']}"))
    for answer in answers:
        assert str(tmp_path) not in answer.text


@pytest.mark.proves("vault.files.no-vault")
async def test_without_a_vault(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False) as app:
        for method, path, body in (
            ("GET", "/api/notes", None),
            ("POST", "/api/notes", {"title": "x"}),
            ("GET", "/api/notes/x", None),
            ("PUT", "/api/notes/x", {"content": "x"}),
            ("PATCH", "/api/notes/x", {}),
            ("DELETE", "/api/notes/x", None),
            ("POST", "/api/notes/x/move", {"folder": "x"}),
            ("GET", "/api/folders", None),
            ("GET", "/api/tags", None),
            ("GET", "/api/trash", None),
            ("POST", "/api/search", {"query": "x", "mode": "fts"}),
            ("POST", "/api/search", {"query": " "}),
            ("POST", "/api/index/rebuild", {"scope": "fts"}),
        ):
            answer = await app.http.request(method, path, json=body)
            assert answer.status_code == 409, (method, path)
            assert answer.json()["error"]["code"] == "VAULT_NOT_OPEN"
        assert (await app.http.get("/api/vault")).json()["state"] == "closed"
        assert (await app.http.get("/api/index/status")).json()["status"] == "idle"
        assert _state(tmp_path / "vault") == {}


@pytest.mark.proves("vault.files.vault-choice")
async def test_only_the_host_chooses_the_vault(vault: Vault, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "there.md").write_text("there")
    await vault.create("here")
    answer = await vault.app.http.post("/host/vault", json={"path": str(other)})
    assert answer.status_code in (401, 403)
    answer = await vault.app.anonymous.post("/host/vault", json={"path": str(other)})
    assert answer.status_code == 401
    assert await vault.titles() == ["here"]
    document = (await vault.app.http.get("/openapi.json")).json()
    setters = [
        path
        for path, item in document["paths"].items()
        if path.startswith("/api/") and "vault" in path and item.keys() & {"post", "put", "patch"}
    ]
    assert setters == []
    answer = await vault.app.host.post("/host/vault", json={"path": str(other)})
    assert answer.status_code == 200
    vault.folder = other
    await vault.note_at("there.md")
    assert await vault.titles() == ["there"]
    # The search, too, is that of the open vault alone.
    assert await vault.found("here") == []
    assert len(await vault.found("there")) == 1
