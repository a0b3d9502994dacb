"""Folders and tags."""

from typing import Any

import pytest

from tests.vault.conftest import Vault


async def _folders(vault: Vault) -> list[tuple[str, str, int]]:
    answer = await vault.app.http.get("/api/folders")
    assert answer.status_code == 200
    return [(item["path"], item["name"], item["note_count"]) for item in answer.json()["items"]]


async def _tags(vault: Vault) -> dict[str, int]:
    answer = await vault.app.http.get("/api/tags")
    assert answer.status_code == 200
    return {item["tag"]: item["note_count"] for item in answer.json()["items"]}


@pytest.mark.proves("vault.folders.list")
async def test_folders(vault: Vault) -> None:
    await vault.create("one", folder="a/b")
    note = await vault.create("two", folder="a")
    await vault.create("root")
    (vault.folder / "empty/inner").mkdir(parents=True)
    (vault.folder / ".obsidian").mkdir()
    gone = await vault.create("three", folder="c")
    await vault.delete(gone["note_id"])
    assert await _folders(vault) == [
        ("a", "a", 2),
        ("a/b", "b", 1),
        ("c", "c", 0),
        ("empty", "empty", 0),
        ("empty/inner", "inner", 0),
    ]
    await vault.app.http.post(f"/api/notes/{note['note_id']}/move", json={"folder": "empty/inner"})
    assert (await _folders(vault))[-2:] == [("empty", "empty", 1), ("empty/inner", "inner", 1)]


@pytest.mark.proves("vault.tags.list")
async def test_counts_follow(vault: Vault) -> None:
    one = await vault.create("one", "#shared #only", tags=["matter"])
    two = await vault.create("two", "#Shared")
    assert await _tags(vault) == {"matter": 1, "only": 1, "shared": 2}
    await vault.put(two["note_id"], "nothing")
    assert await _tags(vault) == {"matter": 1, "only": 1, "shared": 1}
    await vault.delete(one["note_id"])
    assert await _tags(vault) == {}


@pytest.mark.proves("vault.tags.sources")
@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one and #two/three, (#four) #five-6_7", ["one", "two/three", "four", "five-6_7"]),
        ("中文，#标签。#第二 文字#不是", ["标签", "第二"]),
        ("# heading\n#tag\n## #inheading", ["tag", "inheading"]),
        ("`#code` ``#co`de`` #yes", ["yes"]),
        ("```\n#code\n```\n~~~\n#code\n~~~\n#yes", ["yes"]),
        ("    #indented code\n\n#yes", ["yes"]),
        ("#123 #1a http://x.y/#part a#b &#39; ##x", ["1a"]),
        ("#Case #case #CASE", ["Case"]),
        ("---\ntags: [Matter, '#hash']\n---\n#matter #text", ["Matter", "hash", "text"]),
        ("```\n#never closed", []),
    ],
)  # fmt: skip
async def test_where_tags_come_from(vault: Vault, text: str, tags: list[str]) -> None:
    note = await vault.create("Note", text)
    assert note["tags"] == tags
    for tag in tags:
        assert await vault.titles(tag=tag.upper()) == ["Note"]


async def test_tags_that_cannot_be_written_are_refused(vault: Vault) -> None:
    for tags in (["a,b"], [""], ["  "], ["#"], ["a\nb"], ["x" * 101], [1]):
        answer = await vault.app.http.post("/api/notes", json={"title": "x", "tags": tags})
        assert answer.status_code == 422, tags
    odd: list[Any] = [
        "true",
        "1.5",
        "a: b",
        "- x",
        "'",
        '"',
        "[x]",
        "{",
        "null",
        "emoji 😀",
        "#hash",
    ]
    note = await vault.create("Note", "text", tags=odd)
    assert note["tags"] == [tag.removeprefix("#") for tag in odd]
    assert (await vault.get(note["note_id"]))["tags"] == note["tags"]
