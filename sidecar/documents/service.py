"""Attachments as a model can be given them: documents as text, pictures as data URIs."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidecar.documents.libreoffice import find_soffice
from sidecar.kernel.catalogue import Localised
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.logging import get_logger
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import WorkerPool
from sidecar.kernel.workers.group import WorkerGroup

log = get_logger(__name__)

MEBIBYTE: Final = 1024 * 1024
IMAGE_BYTES: Final = 5 * MEBIBYTE
MOST_CHARACTERS: Final = 1_000_000
"""What one answer of a worker can hold, even of characters that JSON writes with twelve."""
CONCURRENCY: Final = 2
TEXT_SECONDS: Final = 60.0
CONVERSION_SECONDS: Final = 180.0
PICTURE_SECONDS: Final = 60.0

_OPEN_XML: Final = "application/vnd.openxmlformats-officedocument"
_KINDS: Final = {
    f"{_OPEN_XML}.wordprocessingml.document": "docx",
    f"{_OPEN_XML}.presentationml.presentation": "pptx",
    "application/vnd.ms-powerpoint": "ppt",
}


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a document, as Markdown. ``truncated``: it goes on behind the limit."""

    text: str
    truncated: bool
    warnings: tuple[Localised, ...]
    """What the text lacks, for a person."""


class DocumentService:
    """Reads attachments in worker processes, since nobody knows where the files come from.

    Whatever keeps a file from being read ends as ``CHAT_ATTACHMENT_FAILED`` with the attachment's name
    and a reason for a person; ``details`` has both, the reason as a word of
    :data:`sidecar.documents.refusal.Reason`. Cancelling the caller's task ends the work.
    """

    def __init__(self, paths: DataPaths, workers: WorkerPool) -> None:
        self._paths = paths
        self._workers = WorkerGroup(workers, "documents", CONCURRENCY)

    @staticmethod
    def converter() -> Path | None:
        """Return the program that old presentations (PPT) are read with; None where there is none."""
        return find_soffice()

    @staticmethod
    def reads(media_type: str) -> bool:
        """Whether documents of this type can be turned into text."""
        return media_type in _KINDS

    async def extract_text(
        self, path: Path, media_type: str, *, name: str, limit: int
    ) -> ExtractedText:
        """Return the text of the document at *path*: never an empty one.

        *name* is what the user calls the file. *limit* is the most characters, a million at the most.
        An old presentation (PPT) is converted by LibreOffice, where that is installed.
        """
        kind = _KINDS.get(media_type)
        if kind is None:
            raise _failure(name, "unsupported")
        folder = self._paths.temporary / new_id("document")
        params = {
            "path": str(path),
            "kind": kind,
            "limit": max(1, min(limit, MOST_CHARACTERS)),
            "folder": str(folder),
        }
        if kind != "ppt":
            return _extracted(name, await self._result("text", params, name, TEXT_SECONDS))
        await asyncio.to_thread(folder.mkdir, mode=0o700)
        try:
            return _extracted(name, await self._result("text", params, name, CONVERSION_SECONDS))
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))

    async def image_data_uri(self, path: Path, *, name: str, max_bytes: int = IMAGE_BYTES) -> str:
        """Return the PNG, JPEG or WebP picture at *path* as a data URI of a PNG or JPEG file.

        That file has at most *max_bytes* bytes before it is encoded, stands upright and holds nothing
        but pixels: a picture that is too large is scaled down. *name* is what the user calls the file.
        """
        params = {"path": str(path), "max_bytes": min(max_bytes, IMAGE_BYTES)}
        uri: str = (await self._result("picture", params, name, PICTURE_SECONDS))["uri"]
        return uri

    async def _result(
        self, method: str, params: dict[str, Any], name: str, seconds: float
    ) -> dict[str, Any]:
        try:
            return await self._workers.result(method, params, limit_seconds=seconds)
        except TimeoutError:
            raise _failure(name, "took_too_long") from None
        except ProjectError as error:
            reason = _REASONS.get(error.code, error.params.get("reason"))
            if reason is None:
                raise
            raise _failure(name, str(reason)) from error


_REASONS: Final = {
    # Its memory was over, or what took the file apart fell over it.
    "WORKER_CRASHED": "too_complex",
    "WORKER_TIMEOUT": "took_too_long",
}


def _failure(name: str, reason: str) -> ProjectError:
    log.info("attachment.refused", extra={"reason": reason})
    return ProjectError(
        "CHAT_ATTACHMENT_FAILED",
        details={"name": name, "reason": reason},
        name=name,
        reason=Localised(f"attachment.{reason}"),
    )


def _extracted(name: str, result: dict[str, Any]) -> ExtractedText:
    warnings = [
        Localised(f"attachment.{kind}_left_out", {"name": name, "count": result[kind]})
        for kind in ("pictures", "objects")
        if result[kind]
    ]
    return ExtractedText(result["text"], result["truncated"], tuple(warnings))
