"""Writes a document for Word, with real headings, lists, tables, footnotes and pictures."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from docx.oxml.ns import qn

from sidecar.export.anchors import heading_names
from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.document import Document, Node
from sidecar.export.docx_code import CodeWriter
from sidecar.export.docx_footnotes import Footnotes
from sidecar.export.docx_inline import InlineWriter
from sidecar.export.docx_tables import table_of
from sidecar.export.docx_template import (
    CALLOUT,
    CALLOUT_TITLE,
    CODE_BLOCK,
    FOOTNOTE_TEXT,
    INDENT,
    LEVELS,
    Template,
    metadata_paragraph,
)
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


@dataclass(slots=True)
class _Before:
    """What was written last."""

    node: Node | None = None
    element: Element = None


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
        self._marked = CodeWriter(self._template, options.code_theme)
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
        before = _Before()
        for node in self._document.root.children:
            if not node.attributes.get("footnotes"):
                for element in self._apart(node, _Place(), before):
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

    def _blocks(self, nodes: list[Node], place: _Place) -> Iterator[Element]:
        before = _Before()
        for node in nodes:
            yield from self._apart(node, place, before)

    def _apart(self, node: Node, place: _Place, before: _Before) -> Iterator[Element]:
        """Write a block, apart from one before it whose lines would otherwise join its own."""
        for element in self._block(node, place):
            if (
                before.node is not None
                and before.node is not node
                and _joins(before, node, element)
            ):
                yield _gap()
            before.node, before.element = node, element
            yield element

    def _quote(self, node: Node, place: _Place) -> Iterator[Element]:
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
        place: _Place,
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
        self,
        node: Node,
        place: _Place,
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

    def _code(self, code: str, place: _Place, language: str | None = None) -> Element:
        element = self._new_paragraph(place, CODE_BLOCK)
        element.extend(self._marked.runs(code, language))
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

    def _table(self, node: Node, place: _Place) -> Iterator[Element]:
        columns = 1 + max((cell.attributes["column"] for cell in node.children), default=0)
        if columns > MOST_COLUMNS:
            self.notices.warn(node, "warning.export_table_too_wide", limit=MOST_COLUMNS)
            yield self._code(table_text(node), place)
            return
        room = self._template.width // 635 - place.indent
        yield table_of(node, columns, place.indent, room, self._inline, self._stop)
        # Two tables that touch would become one, and a cell must not end in one.
        yield _gap()

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
            note.extend(self._blocks(shown, _Place(footnote=True)))
        finally:
            self._inline = body
            self._open_notes.pop()
        return [reference]


def _leads_back(block: Node) -> bool:
    """Whether a block of a footnote is nothing but the link to its reference, which Word has by itself."""
    links = block.children if block.type == "paragraph" else [block]
    return bool(links) and all("back" in link.attributes for link in links)


def _gap() -> Element:
    """Return a paragraph that only takes room."""
    return paragraph(None, w("spacing", after=60, line=120, lineRule="auto"))


def _joins(before: _Before, node: Node, element: Element) -> bool:
    """Whether Word would draw one box around two blocks, or one line beside them."""
    styles = {_style_of(before.element), _style_of(element)}
    if styles == {CODE_BLOCK}:
        return True
    quotes = before.node is not None and before.node.type == node.type == "blockquote"
    return quotes and styles <= {"Quote", CALLOUT, CALLOUT_TITLE}


def _style_of(element: Element) -> str | None:
    style = element.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    return None if style is None else style.get(qn("w:val"))


def _scale(content: bytes, width: int) -> float:
    """Return the size at which a PNG is shown, as a share of its own."""
    return width / int.from_bytes(content[16:20], "big")
