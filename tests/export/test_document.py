"""Markdown becomes the document tree."""

import pytest

from sidecar.export.cancellation import Stopped, StopSignal
from sidecar.export.document import NODE_TYPES, Document, Node
from sidecar.export.markdown import parse_markdown

EVERYTHING = """\
---
title: Front matter
---
# Heading **one**

A paragraph with *emphasis*, **strong**, ~~struck~~, `code`, a [link](https://example.org "Title"),
a formula $x^2$ and a picture ![alt words](picture.png).

$$
\\int_0^1 x\\,dx
$$

- [ ] open
- [x] done
  - deeper

3. three

| left | centre |
| --- | :-: |
| 1 | 2 |

> quoted

```python
print("code")
```

```mermaid
graph TD; A-->B
```

```function-plot
sin(x)
```

A footnote[^n].

[^n]: The note.
"""


def parse(markdown: str) -> Document:
    return parse_markdown(markdown, StopSignal())


def of_type(document: Document, kind: str) -> list[Node]:
    return [node for node in document.root.walk() if node.type == kind]


@pytest.mark.proves("export.ast.node-types", "export.ast.node-shape")
def test_every_type_has_its_node() -> None:
    document = parse(EVERYTHING)
    assert {node.type for node in document.root.walk()} == set(NODE_TYPES)
    shape = document.root.to_json()
    waiting = [shape]
    while waiting:
        node = waiting.pop()
        assert node.keys() == {"node_id", "type", "attributes", "children", "text"}
        waiting += node["children"]
    assert shape["type"] == "document"
    assert document.warnings == []


@pytest.mark.proves("export.ast.heading-level")
def test_a_heading_has_its_level() -> None:
    document = parse("\n\n".join(f"{'#' * level} level {level}" for level in range(1, 7)))
    headings = of_type(document, "heading")
    assert [node.attributes["level"] for node in headings] == [1, 2, 3, 4, 5, 6]
    assert [node.plain_text() for node in headings] == [f"level {n}" for n in range(1, 7)]


@pytest.mark.proves("export.ast.node-ids-stable")
def test_node_ids_are_unique_and_the_same_at_each_parse() -> None:
    first, second = parse(EVERYTHING), parse(EVERYTHING)
    ids = [node.node_id for node in first.root.walk()]
    assert len(ids) == len(set(ids))
    assert first.root.to_json() == second.root.to_json()


@pytest.mark.proves("export.ast.fences")
@pytest.mark.parametrize(
    ("markdown", "kind", "text"),
    [
        ("```mermaid\ngraph TD\n```", "mermaid", "graph TD\n"),
        ("~~~ mermaid\ngraph TD\n~~~", "mermaid", "graph TD\n"),
        ("```function-plot\nsin(x)\n```", "function_plot", "sin(x)\n"),
        ("```plot\nsin(x)\n```", "function_plot", "sin(x)\n"),
        ("```python\nx\n```", "code_block", "x\n"),
        ("```\nx\n```", "code_block", "x\n"),
        ("    indented", "code_block", "indented\n"),
        ("a $x_1 + 2$ b", "math_inline", "x_1 + 2"),
        ("$$\nx\n$$", "math_block", "\nx\n"),
        ("a $$x$$ b", "math_block", "x"),
    ],
)
def test_fences_and_formulas(markdown: str, kind: str, text: str) -> None:
    (node,) = of_type(parse(markdown), kind)
    assert node.text == text
    if kind == "code_block":
        assert node.attributes["language"] == ("python" if "python" in markdown else None)


def test_prices_are_no_formula() -> None:
    document = parse("It costs $5 or $ 6, and 5$ more.")
    assert document.root.plain_text() == "It costs $5 or $ 6, and 5$ more."


def test_front_matter_is_left_out() -> None:
    assert "Front matter" not in parse(EVERYTHING).root.plain_text()


def test_lists_and_tasks() -> None:
    items = of_type(parse(EVERYTHING), "list_item")
    states = [(item.attributes["checked"], item.plain_text()) for item in items]
    assert states == [
        (False, "open"),
        (True, "donedeeper"),
        (None, "deeper"),
        (None, "three"),
        (None, "The note.↩"),
    ]
    assert [node.attributes.get("start") for node in of_type(parse("7. x"), "list")] == [7]


def test_cells_know_their_place() -> None:
    (table,) = of_type(parse(EVERYTHING), "table")
    places = [
        (cell.attributes["row"], cell.attributes["column"], cell.attributes["header"])
        for cell in table.children
    ]
    assert places == [(0, 0, True), (0, 1, True), (1, 0, False), (1, 1, False)]
    assert [cell.attributes["align"] for cell in table.children] == [None, "center"] * 2


def test_nodes_know_their_line() -> None:
    (mermaid,) = of_type(parse(EVERYTHING), "mermaid")
    assert EVERYTHING.splitlines()[mermaid.line - 1] == "```mermaid"


def test_what_is_nested_too_deeply_keeps_its_words() -> None:
    document = parse("> " * 500 + "buried words\n\n" + "- " * 2 + "after")
    assert "buried words" in document.root.plain_text()
    assert "after" in document.root.plain_text()
    assert [warning.key for warning in document.warnings] == ["warning.export_source_kept"]
    tangled = parse("**a " * 5000 + "core" + " b**" * 5000)
    assert "core" in tangled.root.plain_text()
    assert [warning.key for warning in tangled.warnings] == ["warning.export_source_kept"]


def test_parsing_stops_when_it_is_told_to() -> None:
    stop = StopSignal()
    stop.set()
    with pytest.raises(Stopped):
        parse_markdown(EVERYTHING, stop)


def test_an_unused_footnote_is_told_of() -> None:
    document = parse("text\n\n[^x]: nobody reads this")
    assert [warning.key for warning in document.warnings] == ["warning.export_footnote_unused"]


def test_callouts_have_a_title() -> None:
    document = parse("> [!Warning]- Mind **this**\n> body\n\n> [!note]\n\n> [no] callout")
    quotes = of_type(document, "blockquote")
    assert [quote.attributes.get("callout") for quote in quotes] == ["warning", "note", None]
    assert [child.plain_text() for child in quotes[0].children] == ["Mind this", "body"]
    assert quotes[0].children[0].children[0].type == "strong"
    assert [child.plain_text() for child in quotes[1].children] == ["Note"]
    assert quotes[2].plain_text() == "[no] callout"


def test_links_between_notes() -> None:
    document = parse(
        "[[Other note]] [[Other#Part|words]] [[#第一 章]] ![[图 1.png]] ![[b.jpg|300]] ![[Note]] `[[x]]` [[]]"
    )
    links = [(link.attributes["href"], link.plain_text()) for link in of_type(document, "link")]
    assert links == [
        ("Other%20note.md", "Other note"),
        ("Other.md", "words"),
        ("#第一-章", "第一 章"),
        ("Note.md", "Note"),
    ]
    images = [(i.attributes["src"], i.attributes["alt"]) for i in of_type(document, "image")]
    assert images == [("%E5%9B%BE%201.png", "图 1.png"), ("b.jpg", "")]
    assert "[[x]]" in document.root.plain_text()
    assert "[[]]" in document.root.plain_text()


def test_addresses_are_links_by_themselves() -> None:
    document = parse(
        "See https://example.org/a?b=1, me@example.org and readme.md. `https://no.org`"
    )
    assert [link.attributes["href"] for link in of_type(document, "link")] == [
        "https://example.org/a?b=1",
        "mailto:me@example.org",
    ]


@pytest.mark.parametrize(
    ("markdown", "addresses"),
    [
        ("见https://example.com/路径，然后。", ["https://example.com/%E8%B7%AF%E5%BE%84"]),
        ("（https://example.com/a?b=1）", ["https://example.com/a?b=1"]),
        ("https://a.example、https://b.example。完", ["https://a.example", "https://b.example"]),
        ("写信给 me@example.com，谢谢", ["mailto:me@example.com"]),
        ("[文字](https://example.com/，。)", ["https://example.com/%EF%BC%8C%E3%80%82"]),
        ("https://example.com/a,b.c;d end", ["https://example.com/a,b.c;d"]),
    ],
)
def test_an_address_ends_where_the_chinese_sentence_goes_on(
    markdown: str, addresses: list[str]
) -> None:
    document = parse(markdown)
    assert [link.attributes["href"] for link in of_type(document, "link")] == addresses
    assert document.root.plain_text() == markdown.replace(
        "[文字](https://example.com/，。)", "文字"
    )
