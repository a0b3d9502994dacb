"""Writes a document as one HTML file that needs nothing else: no network, no script, no other file."""

import time
from collections.abc import Iterator
from typing import Final

from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.document import Document
from sidecar.export.exporter import ExportResult, Workplace
from sidecar.export.html.rendering import HtmlRendering
from sidecar.export.html.style import document_styles, page_code_styles
from sidecar.export.output import OutputFile, WrittenFile
from sidecar.export.schemas import ExportOptions

# Belt and braces: even a mistake in the writing of it could not make a browser run or fetch anything.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STEP_SECONDS: Final = 0.25


class HtmlExporter:
    """The exporter for ``html``."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    async def export(self, document: Document, options: ExportOptions) -> ExportResult:
        """Write *document*. A cancellation ends the work and leaves no file."""
        place = self._workplace
        rendering = HtmlRendering(document, options, place)
        styles = document_styles(rendering.colours, options.page_size) + page_code_styles(
            options.code_theme, rendering.colours
        )
        with OutputFile(place.output, place.limits.output_bytes) as output:
            pieces = rendering.page(styles, POLICY)
            total = len(document.root.children)
            while await in_thread(place.stop, _write_some, pieces, output, place.stop):
                await place.progress(rendering.blocks_done, total)
            written: WrittenFile = await in_thread(place.stop, output.finish)
        return ExportResult(written, rendering.notices.warnings, rendering.shows_content)


def _write_some(pieces: Iterator[str], output: OutputFile, stop: StopSignal) -> bool:
    """Write for a moment; False once everything is written."""
    until = time.monotonic() + _STEP_SECONDS
    for piece in pieces:
        output.write(piece.encode())
        stop.check()
        if time.monotonic() > until:
            return True
    return False
