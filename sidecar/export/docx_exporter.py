"""Writes a document for Word, with real headings, lists, tables, footnotes and pictures."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from docx.oxml.ns import qn

from sidecar.export.anchors import heading_names
from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.document import Document, Node
from sidecar.export.docx_footnotes import Footnotes
from sidecar.export.docx_inline import InlineWriter
from sidecar.export.docx_template import CODE_BLOCK, INDENT, LEVELS, Template, metadata_paragraph
from sidecar.export.docx_xml import Element, Format, paragraph, run, w
from sidecar.export.exporter import ExportResult, Workplace
from sidecar.export.figures import Figures
from sidecar.export.html_medium import table_text
from sidecar.export.images import Picture, PictureRefused
from sidecar.export.notices import Notices
from sidecar.export.output import OutputFile, WrittenFile
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import text
from sidecar.plots.service import CHART_THEMES, DEFAULT_THEME

# Word's own limit.
MOST_COLUMNS: Final = 63
_QUOTE: Final = 300
_BLOCKS_A_STEP: Final = 50
_ALIGNED: Final = {"center": "center", "right": "right"}
_SURFACE: Final = "F6F8FA"
# Of a column, in letters, and the width of one.
_NARROWEST: Final = 3
_WIDEST: Final = 40
_A_LETTER: Final = 115
_CELL_MARGIN: Final = 80


class DocxExporter:
    """The exporter for ``docx``. Documents keep light colours, which paper has."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    async def export(self, document: Document, options: ExportOptions) -> ExportResult:
        """Write *document*. A cancellation ends the work and leaves no file."""
        place = self._workplace
        writer: _Writer = await in_thread(place.stop, _Writer, document, options, place)
        blocks = writer.blocks()
        total = len(document.root.children)
        while await in_thread(place.stop, _write_some, blocks, place.stop):
            await place.progress(writer.done, total)
        with OutputFile(place.output, place.limits.output_bytes) as output:
            content = await in_thread(place.stop, writer.finish)
            output.write(content)
            written: WrittenFile = await in_thread(place.stop, output.finish)
        return ExportResult(written, writer.notices.warnings, writer.shows_content)


def _write_some(blocks: Iterator[None], stop: StopSignal) -> bool:
    for _ in range(_BLOCKS_A_STEP):
        stop.check()
        if next(blocks, _END) is _END:
            return False
    return True


_END: Final = object()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block stands. *level* is that of the innermost list, -1 outside of lists."""

    level: int = -1
    quotes: int = 0

    @property
    def indent(self) -> int:
        """From the left margin, in twentieths of a point."""
        return INDENT * (self.level + 1) + _QUOTE * self.quotes


class _Writer:
    """One run over one document."""

    def __init__(self, document: Document, options: ExportOptions, place: Workplace) -> None:
        self._document, self._options, self._stop = document, options, place.stop
        self.notices = Notices(document.warnings)
        self._figures = Figures(place, self.notices, CHART_THEMES[DEFAULT_THEME], vectors=False)
        self._template = Template(document.title, options.page_size)
        self._word = self._template.document
        self._headings = heading_names(document)
        self._names = {name: f"heading_{index}" for name, index in self._headings.values() if name}
        self._footnotes = Footnotes(self._word)
        self._notes = {
            item.attributes["footnote"]: item
            for node in document.root.children
            if node.attributes.get("footnotes")
            for item in node.children
        }
        self._open_notes: list[int] = []
        self._inline = self._writer_for(self._word.part)
        self.done = 0

    def _writer_for(self, part: Any) -> InlineWriter:
        return InlineWriter(
            part, self._template, self._figures, self.notices, self._names, self._footnote
        )

    @property
    def shows_content(self) -> bool:
        """Whether, once all blocks are written, at least one part of the document is to be seen."""
        return self._figures.shows_content(self._document)

    def blocks(self) -> Iterator[None]:
        """Write block by block."""
        end = self._word.element.body.find(qn("w:sectPr"))
        for element in self._head():
            end.addprevious(element)
        for node in self._document.root.children:
            if not node.attributes.get("footnotes"):
                for element in self._block(node, _Place()):
                    end.addprevious(element)
            self.done += 1
            yield

    def finish(self) -> bytes:
        """Return the file."""
        output = io.BytesIO()
        self._word.save(output)
        return output.getvalue()

    def _head(self) -> Iterator[Element]:
        document, options = self._document, self._options
        if options.include_title and document.title and not document.starts_with_title():
            element = paragraph("Title")
            element.append(run(document.title))
            yield element
        if options.include_metadata and (metadata := document.metadata):
            entries = [
                ("export.tags", ", ".join(metadata.tags)),
                ("export.created", metadata.created_at),
                ("export.updated", metadata.updated_at),
            ]
            for key, value in entries:
                if value:
                    yield metadata_paragraph(f"{text(key)}: {value}")

    # -- blocks --------------------------------------------------------------------------------

    def _block(self, node: Node, place: _Place) -> Iterator[Element]:
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
                deeper = replace(place, quotes=place.quotes + 1)
                yield from self._blocks(node.children, deeper)
            case "code_block":
                yield self._code(node.text or "", place)
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

    def _blocks(self, nodes: list[Node], place: _Place) -> Iterator[Element]:
        for node in nodes:
            yield from self._block(node, place)

    def _new_paragraph(
        self,
        place: _Place,
        style: str | None = None,
        numbering: tuple[int, int] | None = None,
        *,
        centred: bool = False,
    ) -> Element:
        named = style or (
            "Quote" if place.quotes else "ListParagraph" if place.level >= 0 else None
        )
        properties = []
        if numbering is not None:
            level, number = numbering
            properties.append(w("numPr", w("ilvl", val=level), w("numId", val=number)))
        if place.indent:
            hanging = {"hanging": INDENT} if numbering is not None else {}
            properties.append(w("ind", left=place.indent, **hanging))
        if centred:
            properties.append(w("jc", val="center"))
        return paragraph(named, *properties)

    def _heading(self, node: Node, place: _Place) -> Element:
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
        self, node: Node, place: _Place, numbering: tuple[int, int] | None = None
    ) -> Element:
        element = self._new_paragraph(place, None, numbering)
        if node.attributes.get("rule"):
            line = w("bottom", val="single", sz=6, space=1, color="D1D9E0")
            element.get_or_add_pPr().insert_element_before(
                w("pBdr", line), "w:shd", "w:tabs", "w:spacing", "w:ind", "w:jc"
            )
        element.extend(self._inline.runs(node))
        return element

    def _code(self, code: str, place: _Place) -> Element:
        element = self._new_paragraph(place, CODE_BLOCK)
        element.append(run(code.removesuffix("\n")))
        return element

    def _figure(self, node: Node, place: _Place) -> Element:
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
                self.notices.warn(node, "warning.export_node_unsupported", element=node.type)
            else:
                element = self._new_paragraph(place, centred=True)
                element.append(shown)
                return element
        return self._code(node.text or "", place)

    # -- lists ---------------------------------------------------------------------------------

    def _list(self, node: Node, place: _Place) -> Iterator[Element]:
        inner = replace(place, level=place.level + 1)
        level = min(inner.level, LEVELS - 1)
        number = self._template.numbering(
            ordered=bool(node.attributes["ordered"]),
            start=int(node.attributes.get("start", 1)),
            level=level,
        )
        for item in node.children:
            yield from self._item(item, inner, (level, number))

    def _item(self, item: Node, place: _Place, numbering: tuple[int, int]) -> Iterator[Element]:
        checked = item.attributes.get("checked")
        first, rest = item.children[:1], item.children[1:]
        if first and first[0].type == "paragraph" and not first[0].attributes.get("rule"):
            opening = self._paragraph(first[0], place, None if checked is not None else numbering)
        else:
            opening, rest = self._new_paragraph(place, None, numbering), item.children
        if checked is not None:
            box = run("☑ " if checked else "☐ ")
            runs = opening.find(qn("w:r"))
            if runs is not None:
                runs.addprevious(box)
            else:
                opening.append(box)
        yield opening
        yield from self._blocks(rest, place)

    # -- tables --------------------------------------------------------------------------------

    def _table(self, node: Node, place: _Place) -> Iterator[Element]:
        columns = 1 + max((cell.attributes["column"] for cell in node.children), default=0)
        if columns > MOST_COLUMNS:
            self.notices.warn(node, "warning.export_table_too_wide", limit=MOST_COLUMNS)
            yield self._code(table_text(node), place)
            return
        widths = _column_widths(node, columns, self._template.width // 635 - place.indent)
        table = w(
            "tbl",
            w(
                "tblPr",
                w("tblStyle", val="TableGrid"),
                w("tblW", w=sum(widths), type="dxa"),
                w("tblInd", w=place.indent, type="dxa"),
                w(
                    "tblCellMar",
                    w("left", w=_CELL_MARGIN, type="dxa"),
                    w("right", w=_CELL_MARGIN, type="dxa"),
                ),
                w("tblLook", val="0420", firstRow=1, noHBand=0, noVBand=1),
            ),
            w("tblGrid", *(w("gridCol", w=width) for width in widths)),
        )
        row, number = None, -1
        for cell in node.children:
            if cell.attributes["row"] != number:
                self._stop.check()
                number, row = cell.attributes["row"], w("tr")
                properties = [w("cantSplit")]
                if cell.attributes["header"]:
                    properties.append(w("tblHeader"))
                row.append(w("trPr", *properties))
                table.append(row)
            assert row is not None
            row.append(self._cell(cell, widths[cell.attributes["column"]]))
        yield table
        # Two tables that touch would become one, and a cell must not end in one.
        yield paragraph(None, w("spacing", after=60, line=120, lineRule="auto"))

    def _cell(self, cell: Node, width: int) -> Element:
        properties = [w("tcW", w=width, type="dxa")]
        header = bool(cell.attributes["header"])
        if header:
            properties.append(w("shd", val="clear", color="auto", fill=_SURFACE))
        layout = [w("spacing", before=30, after=30, line=260, lineRule="auto")]
        if aligned := _ALIGNED.get(cell.attributes["align"] or ""):
            layout.append(w("jc", val=aligned))
        words = paragraph(None, *layout)
        words.extend(self._inline.runs(cell, Format(bold=header)))
        return w("tc", w("tcPr", *properties), words)

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
            note.extend(self._blocks(rest, _Place()))
        finally:
            self._inline = body
            self._open_notes.pop()
        return [reference]


def _scale(content: bytes, width: int) -> float:
    """Return the size at which a PNG is shown, as a share of its own."""
    return width / int.from_bytes(content[16:20], "big")


def _column_widths(table: Node, columns: int, room: int) -> list[int]:
    """Return widths that share *room* by how much the cells of each column hold."""
    most = [_NARROWEST] * columns
    for cell in table.children:
        words = cell.plain_text()
        wide = len(words) + sum(ord(character) >= 0x2E80 for character in words)
        column = cell.attributes["column"]
        most[column] = min(_WIDEST, max(most[column], wide + 2))
    needed = [wide * _A_LETTER + 2 * _CELL_MARGIN for wide in most]
    # Columns that need less than an equal share get what they need, the others share the rest.
    widths = [0] * columns
    left, waiting = room, sorted(range(columns), key=needed.__getitem__)
    for position, column in enumerate(waiting):
        share = left // (columns - position)
        widths[column] = max(1, min(needed[column], share))
        left -= widths[column]
    return widths
