"""One export from beginning to end, as the worker process does it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.document import Document, Metadata
from sidecar.export.exporter import DocumentExporter, ExportResult, Workplace
from sidecar.export.fonts import Fonts
from sidecar.export.limits import ExportLimits
from sidecar.export.markdown import parse_markdown
from sidecar.export.pictures.assets import Assets
from sidecar.export.pictures.formulas import Formulas
from sidecar.export.pictures.images import VaultPictures
from sidecar.export.schemas import ExportFormat, ExportOptions
from sidecar.kernel.errors import ProjectError
from sidecar.plots.service import StaticRenderer

PhaseProgress = Callable[[str, int, int], Awaitable[None]]
MakeExporter = Callable[[Workplace], DocumentExporter]


class Pipeline:
    """Makes documents. Fonts, formulas and plots that it has met are remembered for the next one."""

    def __init__(self, font_folders: tuple[Path, ...], cache: Path) -> None:
        """*cache* is a folder for what may be kept from run to run."""
        self._cache = cache
        self._fonts = Fonts(font_folders)
        self._formulas = Formulas(self._fonts)
        self._renderer = StaticRenderer(self._fonts.file_for)

    def load(self, format_: ExportFormat) -> None:
        """Load what documents of a format are made with."""
        _EXPORTERS[format_]()
        if format_ == "pdf":
            from sidecar.export.pdf.layout import load_layout  # noqa: PLC0415

            load_layout(self._fonts, self._cache)

    async def run(
        self, request: dict[str, Any], stop: StopSignal, progress: PhaseProgress
    ) -> ExportResult:
        """Make the document that *request* describes; see :func:`request_of`. Raises ``ProjectError``."""
        await progress("parsing", 0, 0)
        document: Document = await in_thread(stop, parse_markdown, request["markdown"], stop)
        document.title = request["title"] or document.first_heading()
        if (metadata := request["metadata"]) is not None:
            document.metadata = Metadata(
                tuple(metadata["tags"]), metadata["created_at"], metadata["updated_at"]
            )
        total = len(document.root.children)
        await progress("rendering", 0, total)
        limits = ExportLimits(**request["limits"])
        vault = request["vault"]
        place = Workplace(
            output=Path(request["output"]),
            cache=self._cache,
            pictures=VaultPictures(
                Path(vault) if vault else None, request["folder"], limits.picture_bytes
            ),
            assets=Assets.from_json(request["assets"]),
            limits=limits,
            stop=stop,
            progress=lambda done, of: progress("rendering", done, of),
            quote=request["quote"],
            renderer=self._renderer,
            formulas=self._formulas,
            fonts=self._fonts,
        )
        exporter = _EXPORTERS[request["format"]]()(place)
        result = await exporter.export(document, ExportOptions.model_validate(request["options"]))
        if not result.shows_content and (total or document.warnings):
            raise ProjectError("EXPORT_UNSUPPORTED_CONTENT")
        return result


# What these load takes a while, so only what a format needs is loaded.


def _html() -> MakeExporter:
    from sidecar.export.html.exporter import HtmlExporter  # noqa: PLC0415

    return HtmlExporter


def _pdf() -> MakeExporter:
    from sidecar.export.pdf.exporter import PdfExporter  # noqa: PLC0415

    return PdfExporter


def _docx() -> MakeExporter:
    from sidecar.export.docx.exporter import DocxExporter  # noqa: PLC0415

    return DocxExporter


_EXPORTERS: Final[dict[ExportFormat, Callable[[], MakeExporter]]] = {
    "html": _html,
    "pdf": _pdf,
    "docx": _docx,
}
