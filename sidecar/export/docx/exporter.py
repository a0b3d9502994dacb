"""Writes a document for Word, with real headings, lists, tables, footnotes and pictures."""

import io
from collections.abc import Iterator
from typing import Final

from docx.oxml.ns import qn

from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.document import Document
from sidecar.export.docx.blocks import BlockWriter, Place
from sidecar.export.docx.code import CodeWriter
from sidecar.export.docx.spacing import Before
from sidecar.export.docx.template import Template, metadata_paragraph
from sidecar.export.docx.xml import Element, paragraph, run
from sidecar.export.exporter import ExportResult, Workplace
from sidecar.export.notices import Notices
from sidecar.export.output import OutputFile, WrittenFile
from sidecar.export.pictures.figures import Figures
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import text
from sidecar.plots.service import CHART_THEMES, DEFAULT_THEME

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


class _Writer:
    """One run over one document."""

    def __init__(self, document: Document, options: ExportOptions, place: Workplace) -> None:
        self._document, self._options = document, options
        self.notices = Notices(document.warnings)
        self._figures = Figures(place, self.notices, CHART_THEMES[DEFAULT_THEME], vectors=False)
        template = Template(document.title, options.page_size)
        self._word = template.document
        code = CodeWriter(template, options.code_theme)
        self._blocks = BlockWriter(
            document, template, self._figures, self.notices, code, place.stop
        )
        self.done = 0

    @property
    def shows_content(self) -> bool:
        """Whether, once all blocks are written, at least one part of the document is to be seen."""
        return self._figures.shows_content(self._document)

    def blocks(self) -> Iterator[None]:
        """Write block by block."""
        end = self._word.element.body.find(qn("w:sectPr"))
        for element in self._head():
            end.addprevious(element)
        before = Before()
        for node in self._document.root.children:
            if not node.attributes.get("footnotes"):
                for element in self._blocks.apart(node, Place(), before):
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
            for key, value in metadata.entries():
                yield metadata_paragraph(f"{text(key)}: {value}")
