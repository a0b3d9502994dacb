"""Which files can be attached, and what a file is by its content."""

import mmap
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Kind = Literal["audio", "video", "image", "document"]

RECORDING_SUFFIXES: Final = frozenset(
    {".wav", ".mp3", ".m4a", ".aac", ".flac", ".ogg", ".opus", ".webm", ".mp4"}
)
IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp"})
DOCUMENT_TYPES: Final = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".ppt": "application/vnd.ms-powerpoint",
}
SUFFIXES: Final = RECORDING_SUFFIXES | IMAGE_SUFFIXES | DOCUMENT_TYPES.keys()

# Container format as FFmpeg names it → media types of a file with sound alone, and with pictures.
RECORDING_TYPES: Final = {
    "wav": ("audio/wav", "audio/wav"),
    "w64": ("audio/wav", "audio/wav"),
    "mp3": ("audio/mpeg", "audio/mpeg"),
    "aac": ("audio/aac", "audio/aac"),
    "flac": ("audio/flac", "audio/flac"),
    "ogg": ("audio/ogg", "video/ogg"),
    "matroska,webm": ("audio/webm", "video/webm"),
    "mov,mp4,m4a,3gp,3g2,mj2": ("audio/mp4", "video/mp4"),
}

_OPC_PARTS: Final = {".docx": "word/document.xml", ".pptx": "ppt/presentation.xml"}
_OLE_MAGIC: Final = bytes.fromhex("d0cf11e0a1b11ae1")
_OLE_POWERPOINT: Final = "PowerPoint Document".encode("utf-16-le")
_HEAD_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class ContentType:
    """What a file is."""

    kind: Kind
    mime_type: str


def recording_type(container_format: str, *, has_pictures: bool) -> ContentType | None:
    """Return what a recording in this container is, None for a container that isn't accepted."""
    types = RECORDING_TYPES.get(container_format)
    if types is None:
        return None
    mime_type = types[1] if has_pictures else types[0]
    return ContentType("video" if mime_type.startswith("video/") else "audio", mime_type)


def document_or_image_type(path: Path, suffix: str) -> ContentType | None:
    """Return what the file at *path* is, None if it isn't what *suffix* promises. Reads the file.

    An image may be of another image type than its suffix says; its content decides.
    """
    if suffix in IMAGE_SUFFIXES:
        mime_type = _image_type(path)
        return ContentType("image", mime_type) if mime_type else None
    matches = _is_ole_presentation(path) if suffix == ".ppt" else _is_opc(path, _OPC_PARTS[suffix])
    return ContentType("document", DOCUMENT_TYPES[suffix]) if matches else None


def _image_type(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head.endswith(b"IHDR"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def _is_opc(path: Path, part: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
    return "[Content_Types].xml" in names and part in names


def _is_ole_presentation(path: Path) -> bool:
    with path.open("rb") as file:
        if file.read(len(_OLE_MAGIC)) != _OLE_MAGIC:
            return False
        # Not into memory: how large a file may be is for the settings to say.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(_OLE_POWERPOINT) >= 0
