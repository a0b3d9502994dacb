"""Every example of the CommonMark specification goes through every exporter, and its words come out whole."""

import json
import unicodedata
from pathlib import Path

import pytest

from sidecar.export.document import Document, Node
from sidecar.export.schemas import ExportFormat
from tests.export.conftest import ExportDocument
from tests.export.pictures.test_figures import words_of
from tests.export.test_document import parse

EXAMPLES: list[str] = json.loads(
    (Path(__file__).parent / "commonmark" / "examples.json").read_text(encoding="utf-8")
)
BATCH = 110


def joined(examples: list[str], start: int) -> Document:
    """Return one document with the blocks of all examples, each below a heading with its number."""
    document = Document(Node("root", "document"))
    for number, example in enumerate(examples, start=start):
        heading = Node(f"heading_{number}", "heading", {"level": 6, "line": 1})
        heading.children = [Node(f"number_{number}", "text", {"line": 1}, [], f"Example{number}.")]
        blocks = parse(example).root.children
        for block in blocks:
            for node in block.walk():
                node.node_id = f"{number}_{node.node_id}"
        document.root.children += [heading, *blocks]
    return document


def plain(words: str) -> str:
    """Return *words* without blanks and what fonts and readers make of characters.

    Readers take a hyphen at the end of a line for one of the layout, and a font may lack a script.
    """
    kept = unicodedata.normalize("NFKC", words)
    return "".join(c for c in kept if ord(c) < 0x3000 and c.isprintable() and c not in " -ಫఫ")


@pytest.mark.parametrize("format_", ["html", "pdf", "docx"])
@pytest.mark.parametrize("start", range(0, len(EXAMPLES), BATCH))
async def test_words_come_out_whole(
    export_document: ExportDocument, format_: ExportFormat, start: int
) -> None:
    document = joined(EXAMPLES[start : start + BATCH], start)
    result = await export_document(document, format_=format_)
    words = plain(words_of(result))
    position = 0
    for node in document.root.walk():
        wanted = plain(node.text or "")
        if not wanted or node.type in ("math_inline", "math_block") or "back" in node.attributes:
            continue
        found = words.find(wanted, position)
        assert found >= 0, (node.node_id, wanted, words[position : position + 200])
        position = found + len(wanted)
