"""What the service asks of an exporter, whatever its format."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sidecar.export.assets import Assets
from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Document
from sidecar.export.images import VaultPictures
from sidecar.export.output import WrittenFile
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import Localised

Progress = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ExportLimits:
    """The budgets of one format; None where it has none."""

    output_bytes: int | None
    resources: int | None
    picture_bytes: int | None


@dataclass(frozen=True, slots=True)
class Workplace:
    """What one export works with.

    *name_pictures* tells whether warnings may quote the addresses of pictures.
    """

    output: Path
    pictures: VaultPictures
    assets: Assets
    limits: ExportLimits
    stop: StopSignal
    progress: Progress
    name_pictures: bool


@dataclass(frozen=True, slots=True)
class ExportResult:
    """A finished artefact, and what could not be shown in it."""

    file: WrittenFile
    warnings: list[Localised]


class DocumentExporter(Protocol):
    """Turns a document into a file of one format."""

    async def export(self, document: Document, options: ExportOptions) -> ExportResult:
        """Write *document*. A cancellation ends the work and leaves no file."""
        ...
