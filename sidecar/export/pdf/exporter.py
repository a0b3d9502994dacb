"""Writes a document as PDF, laid out by WeasyPrint."""

import itertools
from collections.abc import Iterator
from typing import Final

from sidecar.export.cancellation import in_thread
from sidecar.export.colours.options import colours_of
from sidecar.export.colours.themes import Colours
from sidecar.export.document import Document
from sidecar.export.exporter import ExportResult, Workplace
from sidecar.export.html.medium import Medium
from sidecar.export.html.rendering import HtmlRendering
from sidecar.export.html.style import page_code_styles
from sidecar.export.notices import Notices
from sidecar.export.output import OutputFile
from sidecar.export.pdf.layout import lay_out
from sidecar.export.pdf.style import page_styles
from sidecar.export.pictures.images import pixel_size
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import Localised

SCHEME: Final = "document-picture"
MOST_COLUMNS: Final = 40
_BLOCKS_A_STEP: Final = 50


class PageMedium(Medium):
    """HTML for pages. Pictures are named, and handed over when they are asked for."""

    most_columns = MOST_COLUMNS

    def __init__(self, colours: Colours) -> None:
        self.formula_colour = colours.text
        self.pictures: dict[str, tuple[str, bytes]] = {}
        self._names: dict[bytes, str] = {}

    def picture_address(self, mime_type: str, content: bytes) -> str:
        """Return the name of a picture; the same picture has one name."""
        name = self._names.get(content)
        if name is None:
            # What can't be decoded would be left out without a word.
            pixel_size(content)
            name = self._names[content] = f"{SCHEME}:{len(self._names)}"
            self.pictures[name] = (mime_type, content)
        return name

    def list_start(self, start: int) -> str:
        """Return the attribute of a list whose first number is *start*."""
        return f' style="counter-reset: list-item {start - 1}"'

    def checkbox(self, label: str, checked: bool) -> str:  # noqa: ARG002 - a page has no controls
        """Return a box that is drawn."""
        return f'<span class="box">{"☑" if checked else "☐"}</span>'


class PdfExporter:
    """The exporter for ``pdf``."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    async def export(self, document: Document, options: ExportOptions) -> ExportResult:
        """Write *document*. A cancellation ends the work and leaves no file.

        Laying out the pages can't be interrupted: who cancels must end the process.
        """
        place = self._workplace
        medium = PageMedium(colours_of(options, Notices([])))
        rendering = HtmlRendering(document, options, place, medium)
        styles = page_styles(rendering.colours, options.page_size) + page_code_styles(
            options.code_theme, rendering.colours
        )
        pieces, markup = rendering.page(styles), []
        while part := await in_thread(place.stop, _take, pieces):
            markup.append(part)
            await place.progress(rendering.blocks_done, len(document.root.children))
        with OutputFile(place.output, place.limits.output_bytes) as output:
            content, unknown = await in_thread(
                place.stop, lay_out, "".join(markup), medium.pictures, place.fonts, place.cache
            )
            if unknown:
                shown = {"characters": " ".join(sorted(unknown)[:10])} if place.quote else {}
                rendering.notices.add(Localised("warning.export_glyph_missing", shown))
            output.write(content)
            written = await in_thread(place.stop, output.finish)
        return ExportResult(written, rendering.notices.warnings, rendering.shows_content)


def _take(pieces: Iterator[str]) -> str:
    return "".join(itertools.islice(pieces, _BLOCKS_A_STEP))
