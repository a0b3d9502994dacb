"""How notes are cut into blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.retrieval.blocks import cut_blocks, plain
from sidecar.retrieval.passages import find_spans
from sidecar.vault.schemas import TranscriptPassage

NOTE = """\
Before any heading.

# One

First paragraph
goes on.

## Two

- item one
- item two

  belongs to it

- item three

1. numbered

> quote
> goes on

```python
# no heading

def f(): ...
```

| a | b |
|---|---|
| 1 | 2 |

$$
x = 1

y = 2
$$

```mermaid
graph TD
```

Setext heading
==============

under it
***
after a rule

### Bare

## Bare too

# Last #
"""


def test_the_parts_of_a_note() -> None:
    found = [(block.kind, block.heading_path, block.text) for block in cut_blocks("n", NOTE)]
    assert found == [
        ("paragraph", (), "Before any heading."),
        ("paragraph", ("One",), "First paragraph\ngoes on."),
        ("list", ("One", "Two"), "- item one\n- item two\n\n  belongs to it\n\n- item three\n\n1. numbered"),
        ("quote", ("One", "Two"), "> quote\n> goes on"),
        ("code", ("One", "Two"), "```python\n# no heading\n\ndef f(): ...\n```"),
        ("table", ("One", "Two"), "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("math", ("One", "Two"), "$$\nx = 1\n\ny = 2\n$$"),
        ("diagram", ("One", "Two"), "```mermaid\ngraph TD\n```"),
        ("paragraph", ("Setext heading",), "under it"),
        ("paragraph", ("Setext heading",), "after a rule"),
        ("heading", ("Setext heading",), "### Bare"),
        ("heading", ("Setext heading",), "## Bare too"),
        ("heading", (), "# Last #"),
    ]  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_ranges_are_those_of_the_note(newline: str) -> None:
    content = NOTE.replace("\n", newline)
    for block in cut_blocks("n", content):
        assert content[block.start : block.end] == block.text
        assert block.text == block.text.strip()


@given(st.text(st.sampled_from("#-=`~$|> \n\t1.ab字*_\r"), max_size=200))
def test_no_text_is_lost_or_doubled(content: str) -> None:
    blocks = cut_blocks("n", content)
    assert len({block.block_id for block in blocks}) == len(blocks)
    end = 0
    for block in blocks:
        assert block.start >= end
        assert content[block.start : block.end] == block.text
        end = block.end
    words = {character for character in content if character.isalnum()}
    held = {character for block in blocks for character in block.text + "".join(block.heading_path)}
    # Fence info and heading text apart, each word stands in a block or above one.
    assert words <= held


def test_long_prose_is_cut_at_sentences() -> None:
    sentence = "这是一个不短的句子，用来占据一些位置。"
    blocks = cut_blocks("n", sentence * 200)
    assert len(blocks) > 1
    assert all(len(block.text) <= 1200 for block in blocks)
    assert all(block.text.endswith("。") for block in blocks)
    assert "".join(block.text for block in blocks) == sentence * 200


def test_long_structures_are_cut_at_lines() -> None:
    lines = "\n".join(f"row {number} = value" for number in range(2000))
    blocks = cut_blocks("n", f"```\n{lines}\n```")
    assert 1 < len(blocks) < 12
    assert "\n".join(block.text for block in blocks) == f"```\n{lines}\n```"


def test_one_endless_line_is_cut() -> None:
    blocks = cut_blocks("n", "x" * 10_000)
    assert "".join(block.text for block in blocks) == "x" * 10_000
    assert all(len(block.text) <= 1200 for block in blocks)


def test_ids_depend_on_note_and_text_alone() -> None:
    first = cut_blocks("n", "# A\n\none\n\ntwo")
    second = cut_blocks("n", "# B\n\nzero\n\none\n\ntwo")
    assert [block.block_id for block in first] == [block.block_id for block in second][1:]
    other = cut_blocks("m", "# A\n\none\n\ntwo")
    assert not {block.block_id for block in first} & {block.block_id for block in other}


def test_an_empty_note_is_one_empty_block() -> None:
    for content in ("", "\n\n", "---\n\n***\n"):
        (block,) = cut_blocks("n", content)
        assert (block.kind, block.text) == ("empty", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** *it* `code` ~~gone~~ ==mark==", "bold it code gone mark"),
        ("[text](http://x/(y)) ![alt](p.png) [[note|alias]] [[note]]", "text alt alias note"),
        ("snake_case_name 2*3*4 a * b", "snake_case_name 2*3*4 a * b"),
        ("- [ ] todo\n- [x] done\n> quoted", "todo\ndone\nquoted"),
        ("<b>html</b> a < b", "html a < b"),
        (r"\*escaped\* \#", "*escaped* #"),
        ("中文**粗体**文字", "中文粗体文字"),
    ],
)
def test_plain_text(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_passages_are_found_between_their_neighbours() -> None:
    passages = [
        TranscriptPassage("first unique", 0, 1, "A"),
        TranscriptPassage("ok", 1, 2, "B"),
        TranscriptPassage("second unique", 2, 3, "A"),
        TranscriptPassage("ok", 3, 4, "C"),
    ]
    texts = ["first unique", "edited away", "second *unique*", "ok", "added, ok"]
    spans = find_spans(texts, passages)
    assert [span and (span.start_time, span.speaker) for span in spans] == [
        (0, "A"), None, (2, "A"), (3, "C"), None,
    ]  # fmt: skip


def test_a_block_of_several_passages_and_a_passage_of_several_blocks() -> None:
    passages = [
        TranscriptPassage("one", 0, 1, "A"),
        TranscriptPassage("two", 1, 2, "B"),
        TranscriptPassage("three and four", 2, 4, "A"),
    ]
    spans = find_spans(["one two", "three", "and four", "", "none"], passages)
    assert [span and (span.start_time, span.end_time, span.speaker) for span in spans] == [
        (0, 2, None), (2, 4, "A"), (2, 4, "A"), None, None,
    ]  # fmt: skip
