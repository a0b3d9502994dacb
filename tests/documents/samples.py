"""Attachments that tests make: honest ones by the programs that people use, and hostile ones by hand."""

import io
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from docx import Document

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PRESENTATION = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
OLD_PRESENTATION = "application/vnd.ms-powerpoint"

NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def need_libreoffice() -> str:
    """Return LibreOffice's program; skip the test where it isn't installed."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("LibreOffice isn't here")
    return program


def converted(source: Path, target: str, folder: Path, profile: Path | None = None) -> Path:
    """Return *source* as LibreOffice writes it in the format *target*, with a *profile* of its settings."""
    command = [
        need_libreoffice(),
        "--headless",
        f"-env:UserInstallation={(profile or folder / 'maker').as_uri()}",
        "--convert-to",
        target,
        "--outdir",
        str(folder / "made"),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / "made" / f"{source.stem}.{target.partition(':')[0]}"


def word_file(
    body: str, path: Path, *, before: str = "", parts: dict[str, bytes] | None = None
) -> Path:
    """Make a document of Word whose body is the XML *body*, with *before* before the root, and other *parts*."""
    document = Document()
    buffer = io.BytesIO()
    document.save(buffer)
    xml = f"{before}<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>"
    return replaced(buffer.getvalue(), {"word/document.xml": xml.encode(), **(parts or {})}, path)


def replaced(package: bytes, parts: Mapping[str, bytes | Iterable[bytes]], path: Path) -> Path:
    """Write a package with other contents of some parts."""
    with (
        zipfile.ZipFile(io.BytesIO(package)) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for entry in source.infolist():
            if entry.filename not in parts:
                target.writestr(entry, source.read(entry))
        for name, content in parts.items():
            with target.open(name, "w", force_zip64=True) as stream:
                for piece in (content,) if isinstance(content, bytes) else content:
                    stream.write(piece)
    return path


def paragraph(text: str, properties: str = "") -> str:
    """Return the XML of a paragraph."""
    return (
        f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'
    )


def written(path: Path, content: bytes | bytearray) -> Path:
    """Write a file."""
    path.write_bytes(content)
    return path
