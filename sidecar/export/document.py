"""The document that every exporter takes: a tree of typed nodes, free of Markdown and of any format.

What has no node type of its own is told by attributes: inline code is a ``text`` with ``code``, a
forced line break a ``text`` with ``break``, struck text an ``emphasis`` with ``style``
``strikethrough``, a rule a ``paragraph`` with ``rule``. The cells of a ``table`` are its children in
reading order, each a ``paragraph`` with ``row``, ``column``, ``header`` and ``align``. Footnotes are
a ``list`` with ``footnotes`` at the end of the document, and their references ``link`` nodes with
``footnote``. A ``blockquote`` with ``callout`` is a box
of that kind, with its title as the first paragraph. ``line`` is the line of the source in which the block of a node begins.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, get_args

from sidecar.kernel.catalogue import Localised

NodeType = Literal[
    "document",
    "heading",
    "paragraph",
    "text",
    "emphasis",
    "strong",
    "link",
    "list",
    "list_item",
    "table",
    "image",
    "blockquote",
    "code_block",
    "math_inline",
    "math_block",
    "mermaid",
    "function_plot",
]
NODE_TYPES: Final[tuple[NodeType, ...]] = get_args(NodeType)


@dataclass(slots=True)
class Node:
    """One node. ``text`` is what a leaf holds: its words, or the source of a formula or diagram."""

    node_id: str
    type: NodeType
    attributes: dict[str, Any] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)
    text: str | None = None

    @property
    def line(self) -> int:
        """The line of the source, counted from 1, in which the node's block begins."""
        return int(self.attributes.get("line", 1))

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it, in reading order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def plain_text(self) -> str:
        """Return the words of this node and all below it."""
        return "".join(node.text or node.attributes.get("alt", "") for node in self.walk())

    def to_json(self) -> dict[str, Any]:
        """Return the node as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of a note beside its text."""

    tags: tuple[str, ...]
    created_at: str
    updated_at: str

    def entries(self) -> Iterator[tuple[str, str]]:
        """Yield what is there to be shown: the key of its name in the catalogue, and its words."""
        entries = [
            ("export.tags", ", ".join(self.tags)),
            ("export.created", self.created_at),
            ("export.updated", self.updated_at),
        ]
        yield from (entry for entry in entries if entry[1])


@dataclass(slots=True)
class Document:
    """A document that can be exported. ``warnings`` tell what was lost on the way into the tree."""

    root: Node
    title: str | None = None
    metadata: Metadata | None = None
    warnings: list[Localised] = field(default_factory=list)

    def first_heading(self) -> str | None:
        """Return the words of the first heading, None if there are none."""
        for node in self.root.walk():
            if node.type == "heading" and (words := node.plain_text().strip()):
                return words
        return None

    def starts_with_title(self) -> bool:
        """Whether the text begins with a heading that is the title."""
        first = next(iter(self.root.children), None)
        return (
            first is not None
            and first.type == "heading"
            and first.attributes["level"] == 1
            and first.plain_text().strip() == (self.title or "").strip()
        )


def table_text(table: Node) -> str:
    """Return the rows of a table as lines."""
    rows: dict[int, list[str]] = {}
    for cell in table.children:
        rows.setdefault(cell.attributes["row"], []).append(cell.plain_text())
    return "\n".join(" | ".join(row) for row in rows.values())
