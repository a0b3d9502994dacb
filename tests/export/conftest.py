"""An exporter without a server, and a running application."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from sidecar.export.assets import Assets
from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Metadata
from sidecar.export.exporter import ExportLimits, ExportResult, Workplace
from sidecar.export.html_exporter import HtmlExporter
from sidecar.export.images import VaultPictures
from sidecar.export.markdown import parse_markdown
from sidecar.export.schemas import ExportOptions
from tests.app_client import RunningApp, running_app

LIMITS = ExportLimits(output_bytes=64 * 1024 * 1024, resources=64, picture_bytes=2_000_000)

ExportMarkdown = Callable[..., Awaitable[ExportResult]]


@pytest.fixture
def export_markdown(tmp_path: Path) -> ExportMarkdown:
    """Return a function that exports a text with the vault ``tmp_path / "vault"``."""
    vault = tmp_path / "vault"
    vault.mkdir()

    async def export(
        markdown: str,
        *,
        title: str | None = None,
        metadata: Metadata | None = None,
        folder: str = "",
        assets: Assets | None = None,
        limits: ExportLimits = LIMITS,
        options: ExportOptions | None = None,
    ) -> ExportResult:
        async def ignore(_done: int, _total: int) -> None: ...

        stop = StopSignal()
        document = parse_markdown(markdown, stop)
        document.title, document.metadata = title, metadata
        place = Workplace(
            output=tmp_path / "out.html",
            pictures=VaultPictures(vault, folder, limits.picture_bytes),
            assets=assets or Assets({}),
            limits=limits,
            stop=stop,
            progress=ignore,
            name_pictures=True,
        )
        return await HtmlExporter(place).export(document, options or ExportOptions())

    return export


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """Serve the application without a vault."""
    async with running_app(tmp_path, open_vault=False) as running:
        yield running
