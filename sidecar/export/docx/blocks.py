"""Writes the blocks of a Word document: headings, paragraphs, lists, tables, boxes, code and figures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from docx.oxml.ns import qn

from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Document, Node, table_text
from sidecar.export.docx.code import CodeWriter
from sidecar.export.docx.footnotes import Footnotes
from sidecar.export.docx.inline import InlineWriter
from sidecar.export.docx.spacing import Before, gap, joins
from sidecar.export.docx.tables import table_of
from sidecar.export.docx.template import (
    CALLOUT,
    CALLOUT_TITLE,
    CODE_BLOCK,
    FOOTNOTE_TEXT,
    INDENT,
    LEVELS,
    Template,
)
from sidecar.export.docx.xml import Element, Format, paragraph, run, w
from sidecar.export.links import heading_names
from sidecar.export.notices import Notices
from sidecar.export.pictures.figures import Figures
from sidecar.export.pictures.images import Picture, PictureRefused

# Word's own limit.
MOST_COLUMNS: Final = 63
_QUOTE: Final = 300


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands. *level* is that of the innermost list, -1 outside of lists."""

    level: int = -1
    quotes: int = 0
    callout: bool = False
    footnote: bool = False

    @property
    def indent(self) -> int:
        """From the left margin, in twentieths of a point."""
        return INDENT * (self.level + 1) + _QUOTE * self.quotes

    @property
    def style(self) -> str | None:
        """Of a paragraph that has none of its own."""
        if self.quotes:
            return CALLOUT if self.callout else "Quote"
        if self.level >= 0:
            return "ListParagraph"
        return FOOTNOTE_TEXT if self.footnote else None


class BlockWriter:
    """Writes the blocks of one document. *code* marks its code."""

    def __init__(
        self,
        document: Document,
        template: Template,
        figures: Figures,
        notices: Notices,
        code: CodeWriter,
        stop: StopSignal,
    ) -> None:
        self._template, self._figures, self._notices = template, figures, notices
        self._marked, self._stop = code, stop
        self._headings = heading_names(document)
        self._names = {name: f"heading_{index}" for name, index in self._headings.values() if name}
        self._footnotes = Footnotes(template.document)
        self._notes = {
            item.attributes["footnote"]: item
            for node in document.root.children
            if node.attributes.get("footnotes")
            for item in node.children
        }
        self._open_notes: list[int] = []
        self._inline = self._writer_for(template.document.part)

    def _writer_for(self, part: Any) -> InlineWriter:
        return InlineWriter(
            part, self._template, self._figures, self._notices, self._names, self._footnote
        )

    def apart(self, node: Node, place: Place, before: Before) -> Iterator[Element]:
        """Write a block, apart from one before it whose lines would otherwise join its own."""
        for element in self._block(node, place):
            if before.node is not None and before.node is not node and joins(before, node, element):
                yield gap()
            before.node, before.element = node, element
            yield element

    def _block(self, node: Node, place: Place) -> Iterator[Element]:
        self._stop.check()
        match node.type:
            case "heading":
                yield self._heading(node, place)
            case "paragraph":
                yield self._paragraph(node, place)
            case "list":
                yield from self._list(node, place)
            case "table":
                yield from self._table(node, place)
            case "blockquote":
                yield from self._quote(node, place)
            case "code_block":
                yield self._code(node.text or "", place, node.attributes.get("language"))
            case "math_block" | "math_inline":
                element = self._new_paragraph(place, centred=True)
                element.extend(self._inline.formula(node))
                yield element
            case "mermaid" | "function_plot":
                yield self._figure(node, place)
            case _:
                element = self._new_paragraph(place)
                element.extend(self._inline.runs(Node("", "paragraph", node.attributes, [node])))
                yield element

    def _blocks(self, nodes: list[Node], place: Place) -> Iterator[Element]:
        before = Before()
        for node in nodes:
            yield from self.apart(node, place, before)

    def _quote(self, node: Node, place: Place) -> Iterator[Element]:
        is_callout = bool(node.attributes.get("callout"))
        deeper = replace(place, quotes=place.quotes + 1, callout=is_callout)
        title, rest = node.children[:1] if is_callout else [], node.children[bool(is_callout) :]
        for words in title:
            element = self._new_paragraph(deeper, CALLOUT_TITLE)
            element.extend(self._inline.runs(words))
            yield element
        yield from self._blocks(rest, deeper)

    def _new_paragraph(
        self,
        place: Place,
        style: str | None = None,
        numbering: tuple[int, int] | None = None,
        *,
        centred: bool = False,
        hanging: bool = False,
    ) -> Element:
        properties = []
        if numbering is not None:
            level, number = numbering
            properties.append(w("numPr", w("ilvl", val=level), w("numId", val=number)))
        if place.indent:
            # The number, or the box of a task, hangs before the text.
            hangs = numbering is not None or hanging
            properties.append(w("ind", left=place.indent, **({"hanging": INDENT} if hangs else {})))
        if centred:
            properties.append(w("jc", val="center"))
        return paragraph(style or place.style, *properties)

    def _heading(self, node: Node, place: Place) -> Element:
        element = self._new_paragraph(place, f"Heading{node.attributes['level']}")
        name, index = self._headings[node.node_id]
        runs = list(self._inline.runs(node))
        if name:
            runs = [
                w("bookmarkStart", id=index, name=f"heading_{index}"),
                *runs,
                w("bookmarkEnd", id=index),
            ]
        element.extend(runs)
        return element

    def _paragraph(
        self,
        node: Node,
        place: Place,
        numbering: tuple[int, int] | None = None,
        *,
        hanging: bool = False,
    ) -> Element:
        element = self._new_paragraph(place, None, numbering, hanging=hanging)
        if node.attributes.get("rule"):
            line = w("bottom", val="single", sz=6, space=1, color="D1D9E0")
            element.get_or_add_pPr().insert_element_before(
                w("pBdr", line), "w:shd", "w:tabs", "w:spacing", "w:ind", "w:jc"
            )
        element.extend(self._inline.runs(node))
        return element

    def _code(self, code: str, place: Place, language: str | None = None) -> Element:
        element = self._new_paragraph(place, CODE_BLOCK)
        element.extend(self._marked.runs(code, language))
        return element

    def _figure(self, node: Node, place: Place) -> Element:
        source = (node.text or "").strip()
        picture, scale = None, 1.0
        if node.type == "mermaid":
            if (given := self._figures.given(node)) is not None:
                picture = Picture("image/png", given)
            else:
                self._figures.diagram(node)
        elif (drawn := self._figures.plot(node)) is not None:
            assert isinstance(drawn.content, bytes)
            # Drawn with more pixels than it is wide, to be sharp on paper.
            picture, scale = Picture("image/png", drawn.content), _scale(drawn.content, drawn.width)
        if picture is not None:
            try:
                shown = self._inline.picture(picture, source, scale)
            except PictureRefused:
                self._notices.warn(node, "warning.export_node_unsupported", element=node.type)
            else:
                element = self._new_paragraph(place, centred=True)
                element.append(shown)
                return element
        return self._code(node.text or "", place)

    # -- lists ---------------------------------------------------------------------------------

    def _list(self, node: Node, place: Place) -> Iterator[Element]:
        inner = replace(place, level=place.level + 1)
        level = min(inner.level, LEVELS - 1)
        number = self._template.numbering(
            ordered=bool(node.attributes["ordered"]),
            start=int(node.attributes.get("start", 1)),
            level=level,
        )
        for item in node.children:
            yield from self._item(item, inner, (level, number))

    def _item(self, item: Node, place: Place, numbering: tuple[int, int]) -> Iterator[Element]:
        checked = item.attributes.get("checked")
        first, rest = item.children[:1], item.children[1:]
        if first and first[0].type == "paragraph" and not first[0].attributes.get("rule"):
            is_task = checked is not None
            opening = self._paragraph(
                first[0], place, None if is_task else numbering, hanging=is_task
            )
        else:
            opening, rest = self._new_paragraph(place, None, numbering), item.children
        if checked is not None:
            box = run("☑\t" if checked else "☐\t")
            runs = opening.find(qn("w:r"))
            if runs is not None:
                runs.addprevious(box)
            else:
                opening.append(box)
        yield opening
        yield from self._blocks(rest, place)

    # -- tables --------------------------------------------------------------------------------

    def _table(self, node: Node, place: Place) -> Iterator[Element]:
        columns = 1 + max((cell.attributes["column"] for cell in node.children), default=0)
        if columns > MOST_COLUMNS:
            self._notices.warn(node, "warning.export_table_too_wide", limit=MOST_COLUMNS)
            yield self._code(table_text(node), place)
            return
        room = self._template.width // 635 - place.indent
        yield table_of(node, columns, place.indent, room, self._inline, self._stop)
        # Two tables that touch would become one, and a cell must not end in one.
        yield gap()

    # -- footnotes -----------------------------------------------------------------------------

    def _footnote(self, node: Node) -> list[Element]:
        """Return the reference of a footnote; one that is referred to twice is there twice."""
        number = node.attributes["footnote"]
        item = self._notes.get(number)
        # A note within a note can't be one of Word's; one that refers to itself has no end.
        if item is None or self._open_notes:
            return [run(f"[{number}]", Format(style="FootnoteReference"))]
        reference, note = self._footnotes.add()
        body, self._inline = self._inline, self._writer_for(self._footnotes.part)
        self._open_notes.append(number)
        try:
            first, rest = item.children[:1], item.children[1:]
            if first and first[0].type == "paragraph":
                note[0].extend(self._inline.runs(first[0]))
            else:
                rest = item.children
            shown = [block for block in rest if not _leads_back(block)]
            note.extend(self._blocks(shown, Place(footnote=True)))
        finally:
            self._inline = body
            self._open_notes.pop()
        return [reference]


def _leads_back(block: Node) -> bool:
    """Whether a block of a footnote is nothing but the link to its reference, which Word has by itself."""
    links = block.children if block.type == "paragraph" else [block]
    return bool(links) and all("back" in link.attributes for link in links)


def _scale(content: bytes, width: int) -> float:
    """Return the size at which a PNG is shown, as a share of its own."""
    return width / int.from_bytes(content[16:20], "big")
