"""Pictures of the vault that a document may hold: whole PNG, JPEG and WebP files, nothing else."""

import io
import os
import re
import stat
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Literal
from urllib.parse import unquote

_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

Refusal = Literal["remote", "outside_vault", "missing", "unreadable", "too_large"]


class PictureRefused(Exception):
    """A picture isn't taken into the document."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a picture file, and what they are."""

    mime_type: str
    content: bytes


class VaultPictures:
    """Reads pictures of one vault, by the addresses that a text in one of its folders uses."""

    def __init__(self, root: Path | None, folder: str, max_bytes: int | None) -> None:
        """*folder* is the folder of the text, relative to *root*; None: no vault is open."""
        self._root = root.resolve() if root is not None else None
        self._folder = folder
        self._max_bytes = max_bytes

    def read(self, address: str) -> Picture:
        """Return the picture that *address* names. Raises :class:`PictureRefused`."""
        path = self._locate(address)
        try:
            content = self._read_file(path)
        except (OSError, ValueError) as error:
            raise PictureRefused("missing") from error
        mime_type = picture_type(content)
        if mime_type is None:
            raise PictureRefused("unreadable")
        return Picture(mime_type, content)

    def _locate(self, address: str) -> Path:
        if address.startswith("//") or address.lower().startswith(("http:", "https:", "ftp:")):
            raise PictureRefused("remote")
        if address.lower().startswith("data:"):
            raise PictureRefused("unreadable")
        relative = unquote(address.partition("#")[0].partition("?")[0]).replace("\\", "/")
        if _SCHEME.match(address) or _SCHEME.match(relative) or relative.startswith(("/", "~")):
            raise PictureRefused("outside_vault")
        if self._root is None or not relative:
            raise PictureRefused("missing")
        try:
            path = (self._root / self._folder / PurePosixPath(relative)).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise PictureRefused("missing") from error
        if not path.is_relative_to(self._root):
            raise PictureRefused("outside_vault")
        return path

    def _read_file(self, path: Path) -> bytes:
        # The path is resolved: a link or a pipe that has taken its place meanwhile isn't followed.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise PictureRefused("unreadable")
            if self._max_bytes is None:
                return file.read()
            content = file.read(self._max_bytes + 1)
            if len(content) > self._max_bytes:
                raise PictureRefused("too_large")
            return content


MOST_PIXELS: Final = 100_000_000


def pixel_size(content: bytes) -> tuple[int, int]:
    """Return width and height of a picture that is going to be decoded.

    Raises :class:`PictureRefused` for one that can't be, or whose pixels would fill the memory.
    """
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - only when there is a picture

    try:
        with Image.open(io.BytesIO(content)) as image:
            size = (image.width, image.height)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError) as error:
        raise PictureRefused("unreadable") from error
    if size[0] * size[1] > MOST_PIXELS:
        raise PictureRefused("unreadable")
    return size


def picture_type(content: bytes) -> str | None:
    """Return the media type of a whole PNG, JPEG or WebP file; None for anything else or a broken one."""
    try:
        if content.startswith(_PNG):
            return "image/png" if _is_whole_png(content) else None
        if content.startswith(b"\xff\xd8\xff"):
            return "image/jpeg" if _is_whole_jpeg(content) else None
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return "image/webp" if _is_whole_webp(content) else None
    except (struct.error, IndexError):
        return None
    return None


def _is_whole_png(content: bytes) -> bool:
    position, has_pixels = len(_PNG), False
    while position < len(content):
        length, name = struct.unpack_from(">I4s", content, position)
        body = content[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack_from(">I", content, position + 8 + length)
        if zlib.crc32(body, zlib.crc32(name)) != checksum:
            return False
        if position == len(_PNG) and (name != b"IHDR" or 0 in struct.unpack_from(">II", body)):
            return False
        has_pixels = has_pixels or name == b"IDAT"
        if name == b"IEND":
            return has_pixels
        position += 12 + length
    return False


def _is_whole_jpeg(content: bytes) -> bool:
    """Walk the segments to the picture's data, which must end with the end marker."""
    position, has_frame = 2, False
    while True:
        if content[position] != 0xFF:
            return False
        marker = content[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker == 0xDA:
            return has_frame and content.rfind(b"\xff\xd9") > position
        has_frame = has_frame or marker in _JPEG_FRAMES
        (length,) = struct.unpack_from(">H", content, position + 2)
        if length < 2:
            return False
        position += 2 + length


def _is_whole_webp(content: bytes) -> bool:
    (size,) = struct.unpack_from("<I", content, 4)
    (first,) = struct.unpack_from("<I", content, 16)
    known = content[12:16] in (b"VP8 ", b"VP8L", b"VP8X")
    return known and size + 8 <= len(content) and first + 20 <= len(content)
