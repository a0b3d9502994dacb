"""An exporter without a server, and a running application."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Document, Metadata
from sidecar.export.docx.exporter import DocxExporter
from sidecar.export.exporter import DocumentExporter, ExportResult, Workplace
from sidecar.export.fonts import Fonts
from sidecar.export.html.exporter import HtmlExporter
from sidecar.export.limits import ExportLimits
from sidecar.export.markdown import parse_markdown
from sidecar.export.pdf.exporter import PdfExporter
from sidecar.export.pictures.assets import Assets
from sidecar.export.pictures.formulas import Formulas
from sidecar.export.pictures.images import VaultPictures
from sidecar.export.schemas import ExportFormat, ExportOptions
from sidecar.export.service import ExportSettings
from sidecar.plots.service import StaticRenderer
from tests.app_client import RunningApp, running_app
from tests.export.needs import need_pdf

LIMITS = ExportSettings().limits("html")
FONTS = Fonts()
FORMULAS = Formulas(FONTS)
RENDERER = StaticRenderer(FONTS.file_for)
CACHE = Path(tempfile.gettempdir()) / "sidecar-test-fonts"
EXPORTERS: dict[str, Callable[[Workplace], DocumentExporter]] = {
    "html": HtmlExporter,
    "pdf": PdfExporter,
    "docx": DocxExporter,
}

ExportMarkdown = Callable[..., Awaitable[ExportResult]]
ExportDocument = Callable[..., Awaitable[ExportResult]]


@pytest.fixture
def export_document(tmp_path: Path) -> ExportDocument:
    """Return a function that exports a document with the vault ``tmp_path / "vault"``."""
    vault = tmp_path / "vault"
    vault.mkdir()

    async def export(
        document: Document,
        *,
        folder: str = "",
        assets: Assets | None = None,
        limits: ExportLimits | None = None,
        options: ExportOptions | None = None,
        format_: ExportFormat = "html",
        quote: bool = True,
    ) -> ExportResult:
        async def ignore(_done: int, _total: int) -> None: ...

        if format_ == "pdf":
            need_pdf()
        limits = limits or ExportSettings().limits(format_)
        place = Workplace(
            output=tmp_path / f"out.{format_}",
            cache=CACHE,
            pictures=VaultPictures(vault, folder, limits.picture_bytes),
            assets=assets or Assets({}),
            limits=limits,
            stop=StopSignal(),
            progress=ignore,
            quote=quote,
            renderer=RENDERER,
            formulas=FORMULAS,
            fonts=FONTS,
        )
        return await EXPORTERS[format_](place).export(document, options or ExportOptions())

    return export


@pytest.fixture
def export_markdown(export_document: ExportDocument) -> ExportMarkdown:
    """Return a function that exports a text with the vault ``tmp_path / "vault"``."""

    async def export(
        markdown: str, *, title: str | None = None, metadata: Metadata | None = None, **more: Any
    ) -> ExportResult:
        document = parse_markdown(markdown, StopSignal())
        document.title, document.metadata = title, metadata
        return await export_document(document, **more)

    return export


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """Serve the application without a vault."""
    async with running_app(tmp_path, open_vault=False) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningApp]:
    """Serve one application to all tests of a file: the processes that make documents start once."""
    async with running_app(tmp_path_factory.mktemp("app"), open_vault=False) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that share an application in the event loop that it runs in."""
    for item in items:
        if "tests/export/" in item.path.as_posix() and "shared_app" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
