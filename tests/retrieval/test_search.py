"""Full text search through the API."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import running_app
from tests.vault.conftest import Vault

ALL_MODES = ("fts", "vector", "hybrid")


async def search(vault: Vault, **body: Any) -> tuple[int, dict[str, Any]]:
    """Search and return status and body."""
    answer = await vault.app.http.post("/api/search", json=body)
    return answer.status_code, answer.json()


async def titles(vault: Vault, query: str, **filters: Any) -> list[str]:
    """Return the titles of the hits, best first."""
    return [hit["title"] for hit in await vault.found(query, **filters)]


@pytest.mark.proves(
    "retrieval.search.status", "retrieval.search.hit-fields", "retrieval.search.hit-extra"
)
async def test_an_answer(vault: Vault) -> None:
    note = await vault.create("Title", "# One\n\n## Two\n\nA **peculiar** text\n", folder="f")
    status, body = await search(vault, query="peculiar", mode="fts")
    assert status == 200
    (hit,) = body["hits"]
    assert hit["note_id"] == note["note_id"]
    assert hit["block_id"].startswith("block_")
    assert (hit["title"], hit["file_path"]) == ("Title", "f/Title.md")
    assert hit["heading_path"] == ["One", "Two"]
    assert hit["snippet"] == "A peculiar text"
    assert hit["score"] > 0
    assert (hit["source_audio"], hit["start_time"], hit["end_time"], hit["speaker"]) == (None,) * 4
    status, body = await search(vault, query="nothing", mode="fts")
    assert (status, body) == (200, {"hits": []})


@pytest.mark.proves("retrieval.search.provenance", "retrieval.query-cache.single-local-query")
async def test_provenance_of_full_text(vault: Vault) -> None:
    await vault.create("Note", "word\n\nword word")
    hits = await vault.found("word")
    for rank, hit in enumerate(hits, 1):
        assert hit["provenance"] == {
            "legs": ["fts"],
            "fts": {"rank": rank, "score": hit["score"]},
            "vector": None,
            "fusion": None,
            "reranked": False,
            "query_embedding_cache": None,
            "embedding": None,
        }
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


@pytest.mark.proves("retrieval.search.request", "retrieval.search.defaults")
async def test_what_a_request_takes(vault: Vault) -> None:
    await vault.create("Note", "\n\n".join(f"paragraph {number} word" for number in range(120)))
    for body in (
        {},
        {"query": None, "mode": "fts"},
        {"query": 1, "mode": "fts"},
        {"query": "x", "mode": "semantic"},
        {"query": "x", "mode": "fts", "limit": 0},
        {"query": "x", "mode": "fts", "limit": 101},
        {"query": "x" * 1001, "mode": "fts"},
        {"query": "x", "mode": "fts", "tags": "x"},
        {"query": "x", "mode": "fts", "note_ids": {}},
    ):
        status, answer = await search(vault, **body)
        assert (status, answer["error"]["code"]) == (422, "VALIDATION_ERROR"), body
    assert len(await vault.found("word")) == 10
    assert len(await vault.found("word", limit=100)) == 100
    assert len(await vault.found("word", limit=1, folder=None, tags=None, note_ids=None)) == 1
    assert await vault.found("字" * 1000) == []
    # Without a mode the search is a hybrid one, which needs a model.
    status, answer = await search(vault, query="word")
    assert answer["error"]["code"] == "EMBEDDING_MODEL_UNAVAILABLE"


@pytest.mark.proves(
    "retrieval.errors.model-unavailable",
    "retrieval.errors.no-silent-fallback",
    "retrieval.search.fts-without-model",
)
async def test_without_a_model_only_full_text_answers(vault: Vault) -> None:
    await vault.create("Note", "word")
    for mode in ("vector", "hybrid"):
        status, body = await search(vault, query="word", mode=mode)
        assert (status, body["error"]["code"]) == (503, "EMBEDDING_MODEL_UNAVAILABLE")
        assert "hits" not in body
    assert await titles(vault, "word") == ["Note"]


@pytest.mark.proves("retrieval.search.blank-query")
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("query", ["", " ", "\n\t", "　", "\u00a0"])
async def test_a_blank_query_finds_nothing(vault: Vault, mode: str, query: str) -> None:
    await vault.create("Note", "word")
    assert await search(vault, query=query, mode=mode) == (200, {"hits": []})


PLAIN = [
    '"', '""', "'", '"quoted phrase"', "AND", "OR", "NOT x", "a AND", "NEAR(", "NEAR(a b, 2)", "*", "a*", "**", "(", ")",
    "(a", "a:b", "title:x", "{title}: x", "^a", "-x", "+x", "a + b", "C++", "C#", "node.js", "C:\\Users\\x", "/usr/bin",
    "😀", "👩‍👩‍👧", "x; DROP TABLE notes", "%", "_", "?", "a\0b", "\ufffd", "\u202e", "é", "ＡＢＣ", "１２", "--", "a|b", "[x]",
    "“引号”", "，。", "$$", "<b>", "&amp;", "#tag", "@x", "a" * 1000, '" OR rowid > 0 --', "rank MATCH 'bm25'",
]  # fmt: skip


@pytest.mark.proves("retrieval.search.plain-text-query")
async def test_a_query_is_plain_text(vault: Vault) -> None:
    await vault.create("Plain", "nothing special")
    for query in PLAIN:
        status, body = await search(vault, query=query, mode="fts")
        assert status == 200, (query, body)
    answer = await vault.app.http.post(
        "/api/search", content=b'{"query": "a\\ud800b", "mode": "fts"}',
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    assert answer.status_code < 500


@pytest.mark.proves("retrieval.search.plain-text-query")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("C++", ["cpp"]),
        ("c++ templates", ["cpp"]),
        ("C#", ["csharp"]),
        ("node.js", ["node"]),
        ("src/app/main.py", ["path"]),
        ("C:\\Users\\name", ["path"]),
        ("😀", ["emoji"]),
        ("don't", ["quote"]),
        ('"exact words"', ["quote"]),
        ("ＦＵＬＬ", ["wide"]),
        ("cafe", ["accent"]),
        ("AND", ["operators"]),
        ("*", []),
        ("++", []),
    ],
)
async def test_what_looks_special_is_found(vault: Vault, query: str, found: list[str]) -> None:
    for title, text in {
        "cpp": "templates in C++ today",
        "c": "the letter c alone",
        "csharp": "written in C# mostly",
        "node": "run it with node.js there",
        "path": "see src/app/main.py or C:\\Users\\name\\x",
        "emoji": "fine 😀 really",
        "quote": "don't say exact words",
        "wide": "full width: ＦＵＬＬ",
        "accent": "a café there",
        "operators": "this and that",
    }.items():
        await vault.create(title, text)
    hits = await titles(vault, query)
    assert hits[: len(found)] == found
    assert bool(hits) == bool(found)


@pytest.mark.proves("retrieval.search.cjk")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("死", {"os"}),
        ("死锁", {"os"}),
        ("必要条件", {"os"}),
        ("四个必要条件是互斥", {"os"}),
        ("数据库", {"mixed"}),
        ("MySQL数据库", {"mixed"}),
        ("mysql", {"mixed"}),
        ("据", {"mixed"}),
        ("3D打印", {"mixed"}),
        ("打印", {"mixed"}),
        ("ひらがな", {"kana"}),
        ("한국", {"kana"}),
        ("𠮷野", {"kana"}),
        ("锁死", set()),
        ("据数", set()),
        ("猫", set()),
    ],
)
async def test_chinese(vault: Vault, query: str, found: set[str]) -> None:
    await vault.create("os", "死锁的四个必要条件是互斥、占有等待。")
    await vault.create("mixed", "用MySQL数据库管理3D打印文件v2版")
    await vault.create("kana", "ひらがなとカタカナ 한국어 𠮷野家")
    assert set(await titles(vault, query)) == found


@pytest.mark.proves("retrieval.search.cjk")
async def test_questions_find_what_holds_some_of_their_words(vault: Vault) -> None:
    await vault.create("deadlock", "死锁产生有四个必要条件：互斥、占有并等待、不可抢占、循环等待。")
    await vault.create("page", "分页把内存分成固定大小的块。")
    await vault.create("raft", "Raft elects a leader with randomised timeouts.")
    assert (await titles(vault, "产生死锁需要满足哪些条件？"))[0] == "deadlock"
    assert (await titles(vault, "how does raft elect its leader?"))[0] == "raft"
    # All of the words are better than some of them.
    await vault.create("both", "leader")
    hits = await vault.found("randomised leader")
    assert hits[0]["title"] == "raft"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


async def test_english_words_are_found_by_their_stems_and_beginnings(vault: Vault) -> None:
    await vault.create("Note", "The foxes were running quickly through transcriptions")
    for query in ("fox", "run", "runs", "quick", "transcription", "transcr", "FOXES"):
        assert await titles(vault, query) == ["Note"], query
    for query in ("ox", "unning", "scription"):
        assert await titles(vault, query) == [], query


async def test_titles_and_headings_weigh_more(vault: Vault) -> None:
    for number in range(3):
        await vault.create(f"other {number}", "filler text\n\n" * 3)
    await vault.create("body", "zebra among other words in a body")
    await vault.create("heading", "# zebra\n\nsomething else entirely here")
    await vault.create("zebra", "something different altogether again")
    assert await titles(vault, "zebra") == ["zebra", "heading", "body"]


@pytest.mark.proves("retrieval.search.filter-folder")
async def test_folder(vault: Vault) -> None:
    for folder in ("a", "a/b", "ab", "a b", ""):
        await vault.create(f"in {folder}", "word", folder=folder)
    assert set(await titles(vault, "word", folder="a")) == {"in a", "in a/b"}
    assert await titles(vault, "word", folder="a/b") == ["in a/b"]
    assert await titles(vault, "word", folder="b") == []
    assert len(await titles(vault, "word", folder="")) == 5


@pytest.mark.proves("retrieval.search.filter-tags", "retrieval.blocks.tag-sync")
async def test_tags(vault: Vault) -> None:
    both = await vault.create("both", "word", tags=["One", "two"])
    await vault.create("one", "word #one")
    await vault.create("none", "word")
    assert set(await titles(vault, "word", tags=["ONE"])) == {"both", "one"}
    assert await titles(vault, "word", tags=["one", "#Two"]) == ["both"]
    assert await titles(vault, "word", tags=["one", "three"]) == []
    assert len(await titles(vault, "word", tags=[])) == 3
    await vault.patch(both["note_id"], tags=["three"])
    assert await titles(vault, "word", tags=["one"]) == ["one"]
    assert await titles(vault, "word", tags=["three"]) == ["both"]
    vault.path(both).write_text("---\ntags: [four]\n---\nword")
    async with asyncio.timeout(20):
        while True:
            if await titles(vault, "word", tags=["four"]) == ["both"]:
                break
            await asyncio.sleep(0.02)
    assert await titles(vault, "word", tags=["three"]) == []


@pytest.mark.proves("retrieval.search.filter-note-ids")
async def test_note_ids(vault: Vault) -> None:
    one = await vault.create("one", "word")
    await vault.create("two", "word")
    assert await titles(vault, "word", note_ids=[one["note_id"], "note_0", "😀"]) == ["one"]
    assert await titles(vault, "word", note_ids=["note_0"]) == []
    assert len(await titles(vault, "word", note_ids=[])) == 2


async def test_filters_combine_and_apply_before_the_limit(vault: Vault) -> None:
    for number in range(30):
        await vault.create("word", "word " * 5, folder="noise", tags=["t"])
        if number % 10 == 0:
            await vault.create(f"wanted {number}", "a word among others", folder="f", tags=["t"])
    wanted = await titles(vault, "word", folder="f", tags=["T"], limit=3)
    assert sorted(wanted) == ["wanted 0", "wanted 10", "wanted 20"]
    assert await titles(vault, "word", folder="f", tags=["x"]) == []


@pytest.mark.proves("retrieval.search.deleted-note", "retrieval.search.edited-note")
async def test_writes_show_at_once(vault: Vault) -> None:
    for turn in range(10):
        note = await vault.create("Note", f"born{turn}")
        assert len(await vault.found(f"born{turn}")) == 1
        await vault.put(note["note_id"], f"grown{turn}")
        assert await vault.found(f"born{turn}") == []
        assert len(await vault.found(f"grown{turn}")) == 1
        await vault.delete(note["note_id"])
        assert await vault.found(f"grown{turn}") == []


@pytest.mark.proves("retrieval.search.edited-note")
async def test_a_very_long_note_is_searchable_when_its_write_is_answered(vault: Vault) -> None:
    text = "\n\n".join(f"paragraph{number} of a long note" for number in range(3000))
    note = await vault.create("Long", text)
    for number in (0, 1500, 2999):
        assert len(await vault.found(f"paragraph{number}")) == 1
    await vault.put(note["note_id"], text.replace("paragraph2999", "replaced"))
    assert await vault.found("paragraph2999") == []
    assert len(await vault.found("replaced")) == 1
    assert len(await vault.found("paragraph1500")) == 1


@pytest.mark.proves("retrieval.search.hit-values", "retrieval.rebuild.notes-untouched")
async def test_block_ids_are_stable(vault: Vault, tmp_path: Path) -> None:
    text = "# H\n\nfirst words\n\nsame\n\nsame\n\nlast words"
    note = await vault.create("Note", text)
    before = {hit["block_id"]: hit["snippet"] for hit in await vault.found("words")}
    twins = [hit["block_id"] for hit in await vault.found("same")]
    assert len(before) == 2
    assert len(set(twins)) == 2
    await vault.put(note["note_id"], text.replace("# H", "intro words here\n\n# Other heading"))
    hits = await vault.found("words")
    after = {hit["block_id"]: hit["snippet"] for hit in hits}
    assert before.items() <= after.items()
    assert {tuple(hit["heading_path"]) for hit in hits} == {(), ("Other heading",)}
    await vault.put(note["note_id"], text.replace("first words", "first words changed"))
    changed = {hit["block_id"] for hit in await vault.found("words")}
    assert len(changed & before.keys()) == 1


@pytest.mark.proves("retrieval.fusion.deterministic")
async def test_equal_scores_come_in_one_order(vault: Vault) -> None:
    for _ in range(12):
        await vault.create("Same", "identical words")
    hits = await vault.found("identical", limit=20)
    assert len({hit["score"] for hit in hits}) == 1
    keys = [(hit["note_id"], hit["block_id"]) for hit in hits]
    assert keys == sorted(keys)
    for _ in range(3):
        again = await vault.found("identical", limit=20)
        assert [(hit["note_id"], hit["block_id"]) for hit in again] == keys


async def test_snippets_are_plain_and_show_what_was_found(vault: Vault) -> None:
    filler = "words that say nothing. " * 30
    await vault.create("Long", f"{filler}The **needle** is [here](http://x.y). {filler}")
    (hit,) = await vault.found("needle")
    assert "The needle is here." in hit["snippet"]
    assert len(hit["snippet"]) < 260
    await vault.create("Code", "```python\nprint('haystack')\n```")
    (hit,) = await vault.found("haystack")
    assert hit["snippet"] == "print('haystack')"


async def test_a_note_without_text_is_found_by_its_title(vault: Vault) -> None:
    await vault.create("Lonely title", "")
    await vault.create("Only tagged", "", tags=["rarity"])
    assert await titles(vault, "lonely") == ["Lonely title"]
    assert await titles(vault, "rarity") == ["Only tagged"]


async def test_search_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        await Vault(app, tmp_path / "vault").create("Note", "persistent")
    async with running_app(tmp_path, open_vault=False) as app:
        assert len(await Vault(app, tmp_path / "vault").found("persistent")) == 1
