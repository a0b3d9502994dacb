"""Sources, and which of them a text cites."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sidecar.chat.citation_marks import used_numbers
from sidecar.chat.prompts import search_rules
from sidecar.vault.schemas import TranscriptOrigin, TranscriptPassage
from tests.chat.conftest import Chat, running_chat, searching
from tests.chat.test_retrieval import system_of
from tests.fakes.upstream import FakeUpstream, Turn

SOURCES = tuple((number, f"cit_blk_{number}a") for number in range(1, 8))

MARKS = [
    ("two [2], one [1] and two [2] again", [2, 1]),
    ("[1][2]", [1, 2]),
    ("[2][1][2][1]", [2, 1]),
    ("no mark 1 (2) {3} 【4】 [ 5 ] [6", []),
    ("`[1]` and ``[2] ` `` but [3]", [3]),
    ("```python\nx[1]\n```\n\n~~~\n[2]\n~~~\n[3]", [3]),
    ("    [1]\n\n[2]", [2]),
    ("\\[1\\] \\[2] [3\\] [4]", [4]),
    ("[1](https://example.org) ![2](a.png) [3] [4 [5] more](u)", [3]),
    ("[1]: https://example.org\n\n[1] [2]", [2]),
    ("<https://example.org/[1]> [2]", [2]),
    ("**[1]** _[2]_ ~~[3]~~ # [4]", [1, 2, 3, 4]),
    ("| a | b |\n| - | - |\n| [1] | `[2]` |", [1]),
    ("- [1]\n  - [2]\n\n> [3]\n\n# Title [4]", [1, 2, 3, 4]),
    ("研究[1]，队列[2]。", [1, 2]),
    ("[8] [99] [0] [-1] [1.5] [01]", []),
    ("[cit_blk_3a] then [1], [cit_blk_3a]", [3, 1]),
    ("[cit_blk_9a] `[cit_blk_1a]` [cit_blk_2a](u)", []),
    ("\n[cit_blk_1a][cit_blk_2a]", [1, 2]),
    ("", []),
]


@pytest.mark.proves(
    "chat.citations.used-only",
    "chat.citations.used-order",
    "chat.citations.used-excludes",
    "chat.citations.used-adjacent",
    "chat.citations.unknown-number",
    "chat.citations.old-marks",
    "chat.citations.old-marks-unknown",
)
@pytest.mark.parametrize(("content", "expected"), MARKS)
def test_marks(content: str, expected: list[int]) -> None:
    assert list(used_numbers(content, SOURCES)) == expected
    assert used_numbers(content, ()) == ()


def test_nobody_is_kept_waiting_by_brackets() -> None:
    # Without a bound this would take longer than the test may.
    assert used_numbers("[1]" + "[" * 300_000, SOURCES) == ()
    assert used_numbers("> " * 3000 + "[1]", SOURCES) in ((), (1,))
    assert used_numbers("[" * 300_000 + "\n\n[2]", SOURCES) == (2,)


@pytest.mark.proves(
    "chat.citations.event", "chat.citations.event-order", "chat.citations.model-sees-four-fields"
)
async def test_citations_are_told_and_ids_stay_here(chat: Chat) -> None:
    content = "# Scheduling\n\n## Round robin\n\nA quantum is 20 ms.\n"
    note = await chat.note("OS", content, folder="Course")
    chat.says(searching("quantum"), Turn(text=["20 ms [1]."]))
    told = await chat.ask(use_rag=True)
    (event,) = told.named("Citation")
    citation = event.data
    assert citation["number"] == 1 and citation["note_id"] == note["note_id"]
    assert citation["file_path"] == "Course/OS.md"
    assert citation["heading_path"] == ["Scheduling", "Round robin"]
    assert citation["snippet"] == "A quantum is 20 ms."
    place = slice(citation["start_char"], citation["end_char"])
    assert note["content"][place] == "A quantum is 20 ms."
    assert citation["citation_id"] and citation["block_id"]
    for name in ("source_audio", "start_time", "end_time", "speaker"):
        assert citation[name] is None
    names = [name for name in told.names if name in ("Citation", "TextDelta")]
    assert names == ["Citation", "TextDelta"]
    (result,) = [m for m in chat.sent[1]["messages"] if m["role"] == "tool"]
    assert json.loads(result["content"]) == {
        "sources": [
            {
                "number": 1,
                "file_path": "Course/OS.md",
                "heading_path": ["Scheduling", "Round robin"],
                "content": "A quantum is 20 ms.",
            }
        ]
    }
    for inner in ("citation_id", "block_id", "note_id"):
        assert citation[inner] not in json.dumps(chat.sent)


@pytest.mark.proves("chat.citations.prompt")
async def test_the_rules_for_marks(chat: Chat) -> None:
    chat.says(Turn(text=["hello"]))
    await chat.ask(use_rag=True)
    rules = system_of(chat.sent[0])
    assert "[1][2]" in rules and "right behind each statement" in rules
    assert "Never renumber" in rules
    assert "never present general knowledge as the content of a note" in rules
    assert search_rules(date(2026, 11, 30)).endswith("Today is 2026-11-30, Monday.")
    assert "\nToday is 20" in rules


@pytest.mark.proves(
    "chat.citations.candidates-stored", "chat.citations.used-field", "chat.citations.used-only"
)
async def test_candidates_are_kept_and_read_anew(tmp_path: Path, upstream: FakeUpstream) -> None:
    async with running_chat(tmp_path, upstream) as chat:
        conversation_id = await chat.conversation()
        for title in ("alpha", "beta", "gamma"):
            await chat.note(title, f"the {title} text")
        chat.says(searching("alpha", "beta", "gamma"), Turn(text=["So [3], `[1]` and [3] [2]."]))
        told = await chat.ask(use_rag=True, conversation_id=conversation_id)
        chat.says(searching("alpha"), Turn(text=["Nothing of it."]))
        await chat.ask(use_rag=True, conversation_id=conversation_id)
        before = await chat.messages(conversation_id)
        _, reply, _, silent = before
        assert reply["citations"] == [event.data for event in told.named("Citation")]
        assert [one["number"] for one in reply["citations"]] == [1, 2, 3]
        assert reply["used_citations"] == [3, 2]
        assert len(silent["citations"]) == 1 and silent["used_citations"] == []
    async with running_chat(tmp_path, upstream) as chat:
        assert await chat.messages(conversation_id) == before

        def rewrite(tx: Any) -> None:
            tx.execute(
                "UPDATE chat_messages SET content = ? WHERE message_id = ?",
                (f"[{reply['citations'][0]['citation_id']}]", reply["message_id"]),
            )

        await chat.app.services.database.write(rewrite)
        assert (await chat.messages(conversation_id))[1]["used_citations"] == [1]


@pytest.mark.proves("chat.citations.audio")
async def test_a_transcript_is_cited_with_its_place(chat: Chat) -> None:
    passage = TranscriptPassage("The quantum is twenty milliseconds.", 1.5, 4.0, "Li")
    origin = TranscriptOrigin("transcription_1", 1, "attachment_1", (passage,))
    body = "[00:01] **Li:** The quantum is twenty milliseconds.\n"
    await chat.app.services.vault.create_note("Lecture", body, transcript=origin)
    chat.says(searching("quantum"), Turn(text=["[1]"]))
    (event,) = (await chat.ask(use_rag=True)).named("Citation")
    place = {name: event.data[name] for name in ("start_time", "end_time", "speaker")}
    assert place == {"start_time": 1.5, "end_time": 4.0, "speaker": "Li"}
    assert event.data["source_audio"] == "attachment_1"
