"""Lays out pages with WeasyPrint: the one place that touches it."""

import contextlib
import ctypes.util
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.export.fonts import CONFIGURATION, Fonts
from sidecar.export.pdf.line_breaks import breakable

if TYPE_CHECKING:
    from weasyprint.urls import URLFetcher

LEAN: Final = 0.2
WITH_ITALIC: Final = ("DejaVu Sans Mono",)

Pictures = Mapping[str, tuple[str, bytes]]


def load_layout(fonts: Fonts, cache: Path) -> None:
    """Load what lays out pages, which takes a while the first time. *cache* is as in :func:`lay_out`."""
    _prepare_fonts(fonts, cache)
    with _libraries_by_name():
        import weasyprint  # noqa: F401, PLC0415 - heavy, and needs libraries that may be missing

    _slant_what_has_no_italic()


def lay_out(markup: str, pictures: Pictures, fonts: Fonts, cache: Path) -> tuple[bytes, set[str]]:
    """Return the PDF of a page of HTML.

    *pictures* are media type and content by address; nothing else is opened. *cache* is a folder for
    what may be kept from run to run. The second value are the characters that no font has; boxes stand
    in their place.
    """
    load_layout(fonts, cache)
    from weasyprint import HTML  # noqa: PLC0415

    with _missing_glyphs() as unknown:
        page = HTML(string=breakable(markup), url_fetcher=_fetcher(pictures), base_url=None)
        content: bytes = page.write_pdf()
    return content, unknown


def _look_nowhere(name: str) -> str | None:  # noqa: ARG001 - called as the function it stands for
    return None


@contextlib.contextmanager
def _libraries_by_name() -> Iterator[None]:
    """Have libraries loaded by their names alone on Linux.

    WeasyPrint tries several names of each library, and for each that isn't there other programs would
    be run to look for it.
    """
    look = ctypes.util.find_library
    if sys.platform.startswith("linux"):
        ctypes.util.find_library = _look_nowhere
    try:
        yield
    finally:
        ctypes.util.find_library = look


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


def _prepare_fonts(fonts: Fonts, folder: Path) -> None:
    """Make the fonts known to what lays out pages; before it is imported for the first time."""
    if CONFIGURATION in os.environ:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "fonts.conf"
    written = folder / f"fonts-{os.getpid()}.conf"
    written.write_text(fonts.configuration(folder / "fonts"), encoding="utf-8")
    written.replace(file)
    os.environ[CONFIGURATION] = str(file)


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


def _fetcher(pictures: Pictures) -> "URLFetcher":
    from weasyprint.urls import URLFetcher, URLFetcherResponse  # noqa: PLC0415

    class PictureFetcher(URLFetcher):  # type: ignore[misc]
        """Hands over the pictures of the document, and opens nothing else."""

        def fetch(self, url: str, headers: Any = None) -> Any:  # noqa: ARG002 - a picture has none
            found = pictures.get(url)
            if found is None:
                raise ValueError("only pictures of the document are served")
            mime_type, content = found
            return URLFetcherResponse(url, content, {"Content-Type": mime_type})

    return PictureFetcher()
