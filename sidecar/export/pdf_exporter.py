"""Writes a document as PDF, laid out by WeasyPrint."""

import contextlib
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.export.cancellation import in_thread
from sidecar.export.colours import colours_of
from sidecar.export.document import Document
from sidecar.export.exporter import ExportResult, Workplace
from sidecar.export.fonts import CONFIGURATION, Fonts
from sidecar.export.html_medium import Medium
from sidecar.export.html_rendering import HtmlRendering
from sidecar.export.html_style import page_code_styles
from sidecar.export.images import pixel_size
from sidecar.export.line_breaks import breakable
from sidecar.export.notices import Notices
from sidecar.export.output import OutputFile
from sidecar.export.pdf_style import page_styles
from sidecar.export.schemas import ExportOptions
from sidecar.export.themes import Colours
from sidecar.kernel.catalogue import Localised

if TYPE_CHECKING:
    from weasyprint.urls import URLFetcher

SCHEME: Final = "document-picture"
MOST_COLUMNS: Final = 40
LEAN: Final = 0.2
WITH_ITALIC: Final = ("DejaVu Sans Mono",)
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
            content, unknown = await in_thread(place.stop, lay_out, "".join(markup), medium, place)
            if unknown:
                shown = {"characters": " ".join(sorted(unknown)[:10])} if place.quote else {}
                rendering.notices.add(Localised("warning.export_glyph_missing", shown))
            output.write(content)
            written = await in_thread(place.stop, output.finish)
        return ExportResult(written, rendering.notices.warnings, rendering.shows_content)


def _take(pieces: Iterator[str]) -> str:
    return "".join(itertools.islice(pieces, _BLOCKS_A_STEP))


def _slant_what_has_no_italic() -> None:
    """Make WeasyPrint lean italic text of fonts without one, as browsers do; Chinese fonts have none."""
    from weasyprint.draw import text as drawing  # noqa: PLC0415
    from weasyprint.matrix import Matrix  # noqa: PLC0415

    draw = drawing.draw_first_line
    if getattr(draw, "leans", False):
        return

    def leaning(stream: Any, box: Any, overflow: Any, ellipsis: Any, matrix: Any) -> Any:
        families = box.style["font_family"]
        if box.style["font_style"] != "normal" and families[0] not in WITH_ITALIC:
            matrix = Matrix(c=LEAN) @ matrix
        return draw(stream, box, overflow, ellipsis, matrix)

    leaning.leans = True  # type: ignore[attr-defined]
    drawing.draw_first_line = leaning


def prepare_fonts(fonts: Fonts, folder: Path) -> None:
    """Make the fonts known to what lays out pages; before it is imported for the first time."""
    if CONFIGURATION in os.environ:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "fonts.conf"
    written = folder / f"fonts-{os.getpid()}.conf"
    written.write_text(fonts.configuration(folder / "fonts"), encoding="utf-8")
    written.replace(file)
    os.environ[CONFIGURATION] = str(file)


def lay_out(markup: str, medium: PageMedium, place: Workplace) -> tuple[bytes, set[str]]:
    """Return the PDF of a page of HTML whose pictures are those of *medium*.

    The second value are the characters that no font has; boxes stand in their place.
    """
    prepare_fonts(place.fonts, place.cache)
    from weasyprint import HTML  # noqa: PLC0415 - heavy, and needs libraries that may be missing

    _slant_what_has_no_italic()
    with _missing_glyphs() as unknown:
        fetcher = _fetcher(medium)
        content: bytes = HTML(
            string=breakable(markup), url_fetcher=fetcher, base_url=None
        ).write_pdf()
    return content, unknown


@contextlib.contextmanager
def _missing_glyphs() -> Iterator[set[str]]:
    """Collect the characters that WeasyPrint complains of; nothing else that it says gets through.

    What it logs quotes the document.
    """
    found: set[str] = set()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if str(record.msg).startswith(".notdef glyph") and isinstance(record.args, tuple):
                found.add(str(record.args[0]))

    logger, listener = logging.getLogger("weasyprint"), Listener()
    logging.getLogger("fontTools").setLevel(logging.CRITICAL)
    logger.handlers, logger.propagate = [listener], False
    logger.setLevel(logging.WARNING)
    try:
        yield found
    finally:
        logger.removeHandler(listener)


def _fetcher(medium: PageMedium) -> "URLFetcher":
    from weasyprint.urls import URLFetcher, URLFetcherResponse  # noqa: PLC0415

    class PictureFetcher(URLFetcher):  # type: ignore[misc]
        """Hands over the pictures of the document, and opens nothing else."""

        def fetch(self, url: str, headers: Any = None) -> Any:  # noqa: ARG002 - a picture has none
            found = medium.pictures.get(url)
            if found is None:
                raise ValueError("only pictures of the document are served")
            mime_type, content = found
            return URLFetcherResponse(url, content, {"Content-Type": mime_type})

    return PictureFetcher()
