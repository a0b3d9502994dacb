"""The text of a DOCX file as Markdown, in the order of the document.

Headers, footers, comments, hidden text and what was deleted under tracked changes aren't part of it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from sidecar.documents.docx_inline import InlineReader
from sidecar.documents.docx_styles import Numbering, Styles
from sidecar.documents.graphics import LeftOut
from sidecar.documents.office_package import OfficePackage
from sidecar.documents.text_output import Block, LimitReached, TextOutput, table_rows
from sidecar.documents.xml_elements import (
    Element,
    attribute,
    child,
    children,
    chosen,
    name_of,
    number,
)

_BODY_PARTS: Final = (
    "p", "tbl", "sdt", "customXml", "ins", "moveTo", "AlternateContent", "altChunk", "oMathPara",
)  # fmt: skip
_WRAPPERS: Final = frozenset(
    {"sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo", "Choice", "Fallback"}
)
_MOST_SPAN: Final = 64


class DocxText:
    """Reads one file."""

    def __init__(self, package: OfficePackage, check: Callable[[], None]) -> None:
        """*check* is called all along and may raise what ends the work."""
        self._package = package
        self._check = check
        self._part = package.main_part("word/")
        relationships = package.relationships(self._part)
        parts = {found.kind: found.target for found in relationships.values()}
        self._styles = Styles(package.xml(parts.get("styles", "")))
        self._numbering = Numbering(package.xml(parts.get("numbering", "")))
        self._notes = {
            kind: package.xml(parts.get(f"{kind}s", "")) for kind in ("footnote", "endnote")
        }
        self._list_id = ""
        self.left_out = LeftOut()
        self._inline = InlineReader(package, relationships, self.left_out)

    def write(self, output: TextOutput) -> None:
        """Write the text, and then the footnotes that it refers to."""
        try:
            for element in self._package.stream(self._part, "body", _BODY_PARTS):
                for block in self._blocks([element]):
                    output.add(block)
            for block in self._footnotes():
                output.add(block)
        except LimitReached:
            return

    def _footnotes(self) -> Iterator[Block]:
        group = object()
        # A note may refer to another one, which is then behind it.
        for kind, note_id, mark in self._inline.notes:
            for note in children(self._notes[kind], kind):
                if attribute(note, "id") == note_id:
                    lines = [block.text.strip() for block in self._blocks(note)]
                    yield Block(f"[^{mark}]: " + " ".join(line for line in lines if line), group)

    def _blocks(self, elements: Iterable[Element]) -> Iterator[Block]:
        for element in elements:
            self._check()
            match name_of(element):
                case "p":
                    yield from self._paragraph(element)
                case "tbl":
                    yield from self._table(element)
                case "oMathPara":
                    yield Block(self._inline.read(element).text)
                case "AlternateContent":
                    inner = chosen(element)
                    yield from self._blocks([] if inner is None else inner)
                case "altChunk":
                    self.left_out.objects += 1
                case name if name in _WRAPPERS:
                    yield from self._blocks(element)

    def _paragraph(self, paragraph: Element) -> Iterator[Block]:
        properties = child(paragraph, "pPr")
        found = self._inline.read(paragraph)
        text = found.text.strip()
        # Word counts an empty paragraph of a list too; readers see its number.
        place = self._styles.list_place(properties)
        label = self._numbering.label(place) if place is not None else ""
        heading = self._styles.heading_level(properties)
        if text and heading is not None:
            number_before = label.removeprefix("-")
            line = " ".join(f"{number_before} {text}".split())
            yield Block(f"{'#' * heading} {line}")
        elif text and place is not None:
            if place.level == 0:
                self._list_id = place.list_id
            yield _list_item(label, place.level, text, f"list {self._list_id}")
        else:
            yield Block(text)
        for box in found.boxes:
            yield from self._blocks(box)
        yield from found.graphics

    def _table(self, table: Element) -> Iterator[Block]:
        rows = [
            [self._cell(cell) for cell in self._inside(row, "tc")]
            for row in self._inside(table, "tr")
            if child(row, "trPr", "del") is None
        ]
        if len(rows) == 1 and len(rows[0]) == 1:
            # A frame around text, not a table.
            (cell,) = (
                cell for row in self._inside(table, "tr") for cell in self._inside(row, "tc")
            )
            yield from self._blocks(cell)
            return
        spread = [
            [text for cell, span in row for text in (cell, *[""] * (span - 1))] for row in rows
        ]
        yield from table_rows(spread)

    def _inside(self, element: Element, name: str) -> Iterator[Element]:
        for inner in element:
            if name_of(inner) == name:
                yield inner
            elif name_of(inner) in _WRAPPERS:
                yield from self._inside(inner, name)

    def _cell(self, cell: Element) -> tuple[str, int]:
        """Return the text of a cell and over how many columns it goes."""
        properties = child(cell, "tcPr")
        span = number(attribute(child(properties, "gridSpan"), "val"), 1, most=_MOST_SPAN) or 1
        merged = child(properties, "vMerge")
        if merged is not None and attribute(merged, "val", "continue") == "continue":
            return "", span
        return "\n".join(block.text for block in self._blocks(cell)), span


def _list_item(label: str, level: int, text: str, group: str) -> Block:
    indent = "  " * level if label == "-" else "   " * level
    marker = label == "-" or (label[:-1].isdecimal() and label[-1] in ".)")
    lines = text.splitlines()
    rest = [f"{indent}{' ' * (len(label) + 1)}{line}" for line in lines[1:]]
    text = "\n".join([f"{indent}{label} {lines[0]}", *rest])
    return Block(text, group) if marker else Block(f"{label} {' '.join(lines)}")
