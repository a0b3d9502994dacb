"""What the service asks of an exporter, whatever its format."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Document
from sidecar.export.fonts import Fonts
from sidecar.export.limits import ExportLimits
from sidecar.export.output import WrittenFile
from sidecar.export.pictures.assets import Assets
from sidecar.export.pictures.formulas import Formulas
from sidecar.export.pictures.images import VaultPictures
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import Localised
from sidecar.plots.service import StaticRenderer

Progress = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Workplace:
    """What one export works with.

    *quote* tells whether warnings may quote the text: they outlive one that wasn't saved.
    *cache* is a folder for what may be kept from run to run.
    """

    output: Path
    cache: Path
    pictures: VaultPictures
    assets: Assets
    limits: ExportLimits
    stop: StopSignal
    progress: Progress
    quote: bool
    renderer: StaticRenderer
    formulas: Formulas
    fonts: Fonts


@dataclass(frozen=True, slots=True)
class ExportResult:
    """A finished artefact, and what could not be shown in it.

    *shows_content*: at least one part of the document is there, be it as source.
    """

    file: WrittenFile
    warnings: list[Localised]
    shows_content: bool = True


class DocumentExporter(Protocol):
    """Turns a document into a file of one format."""

    async def export(self, document: Document, options: ExportOptions) -> ExportResult:
        """Write *document*. A cancellation ends the work and leaves no file."""
        ...
