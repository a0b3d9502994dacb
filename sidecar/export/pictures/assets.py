"""Pictures that a client drew for parts of a document: checked, and encoded anew.

Only the picture itself gets through: size, colour type, palette, transparency and pixels. Text,
profiles, animation and whatever follows the end of the picture stay behind.
"""

import base64
import binascii
import hashlib
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sidecar.export.cancellation import StopSignal
from sidecar.export.schemas import ExportAsset
from sidecar.kernel.errors import ProjectError

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
# Samples a pixel and the bit depths that are allowed, by colour type.
_COLOUR_TYPES: Final = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
# First column, first row, and the steps between columns and rows, of the seven passes of Adam7.
_PASSES: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


class _NotPng(Exception):
    """The bytes aren't a whole PNG, or one of more pixels than allowed."""


@dataclass(frozen=True, slots=True)
class AssetLimits:
    """The budgets of a format for its assets, None where it has none."""

    count: int | None
    pixels: int | None
    pixels_in_all: int | None
    bytes_in_all: int | None


@dataclass(frozen=True, slots=True)
class Assets:
    """The pictures of one export, by kind and hash."""

    pictures: dict[tuple[str, str], bytes]

    def find(self, kind: str, *sources: str) -> bytes | None:
        """Return the picture of the part of *kind* whose source is one of *sources*."""
        if not self.pictures:
            return None
        for source in sources:
            digest = hashlib.sha256(source.strip().encode()).hexdigest()
            if (picture := self.pictures.get((kind, digest))) is not None:
                return picture
        return None

    def to_json(self) -> list[dict[str, str]]:
        """Return the stored form."""
        return [
            {
                "kind": kind,
                "source_hash": digest,
                "png_base64": base64.b64encode(content).decode("ascii"),
            }
            for (kind, digest), content in self.pictures.items()
        ]

    @classmethod
    def from_json(cls, stored: list[dict[str, str]]) -> "Assets":
        """Return what :meth:`to_json` stored."""
        return cls(
            {
                (asset["kind"], asset["source_hash"]): base64.b64decode(asset["png_base64"])
                for asset in stored
            }
        )


def read_assets(given: Sequence[ExportAsset], limits: AssetLimits, stop: StopSignal) -> Assets:
    """Check the assets of a request and encode them anew. Raises ``EXPORT_ASSET_INVALID``."""
    if limits.count is not None and len(given) > limits.count:
        raise _invalid(reason="too_many", limit=limits.count)
    pictures: dict[tuple[str, str], bytes] = {}
    bytes_left, pixels_left = limits.bytes_in_all, limits.pixels_in_all
    for index, asset in enumerate(given):
        stop.check()
        key = (asset.kind, asset.source_hash.lower())
        if key in pictures:
            raise _invalid(index, reason="duplicate")
        try:
            content = base64.b64decode(asset.png_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise _invalid(index, reason="not_base64") from error
        bytes_left = _spend(bytes_left, len(content), index, "too_many_bytes")
        try:
            header = _read_header(content)
            pixels = header.width * header.height
            _spend(limits.pixels, pixels, index, "too_many_pixels")
            pixels_left = _spend(pixels_left, pixels, index, "too_many_pixels")
            pictures[key] = _encoded_anew(content, header)
        except (_NotPng, struct.error, zlib.error) as error:
            raise _invalid(index, reason="not_png") from error
    return Assets(pictures)


def _invalid(index: int | None = None, **details: Any) -> ProjectError:
    place = {} if index is None else {"asset": index}
    return ProjectError("EXPORT_ASSET_INVALID", details=place | details)


def _spend(left: int | None, amount: int, index: int, reason: str) -> int | None:
    if left is None:
        return None
    if amount > left:
        raise _invalid(index, reason=reason)
    return left - amount


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    height: int
    depth: int
    colour_type: int
    interlaced: bool

    def row_bytes(self, width: int) -> int:
        """Return the bytes of a row of pixels, without its filter byte."""
        return (width * _COLOUR_TYPES[self.colour_type][0] * self.depth + 7) // 8

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield (bytes of a row, number of rows) of every part of the pixel data."""
        if not self.interlaced:
            yield self.row_bytes(self.width), self.height
            return
        for left, top, across, down in _PASSES:
            width = max(0, -(-(self.width - left) // across))
            height = max(0, -(-(self.height - top) // down))
            if width and height:
                yield self.row_bytes(width), height


def _read_header(content: bytes) -> _Header:
    if content[:8] != SIGNATURE or content[8:16] != b"\0\0\0\x0dIHDR":
        raise _NotPng
    width, height, depth, colour_type, compression, filtering, interlace = struct.unpack_from(
        ">IIBBBBB", content, 16
    )
    allowed = _COLOUR_TYPES.get(colour_type, (0, ()))[1]
    in_range = 0 < width < 2**31 and 0 < height < 2**31
    if not in_range or depth not in allowed or compression or filtering or interlace > 1:
        raise _NotPng
    return _Header(width, height, depth, colour_type, bool(interlace))


def _encoded_anew(content: bytes, header: _Header) -> bytes:
    chunks: dict[bytes, list[bytes]] = {}
    for name, body in _chunks(content):
        chunks.setdefault(name, []).append(body)
    if header.colour_type == 3 and b"PLTE" not in chunks:
        raise _NotPng
    pixels = _pixels(b"".join(chunks.get(b"IDAT", ())), header)
    parts = [SIGNATURE, _chunk(b"IHDR", chunks[b"IHDR"][0])]
    parts += [_chunk(name, chunks[name][0]) for name in (b"PLTE", b"tRNS") if name in chunks]
    parts += [_chunk(b"IDAT", zlib.compress(pixels)), _chunk(b"IEND", b"")]
    return b"".join(parts)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield every chunk to the end of the picture, whose checksums must be right."""
    position = len(SIGNATURE)
    while True:
        length, name = struct.unpack_from(">I4s", content, position)
        body = content[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack_from(">I", content, position + 8 + length)
        if zlib.crc32(body, zlib.crc32(name)) != checksum:
            raise _NotPng
        yield name, body
        if name == b"IEND":
            return
        position += 12 + length


def _pixels(compressed: bytes, header: _Header) -> bytes:
    """Return the rows as the picture holds them, each behind its filter byte."""
    expected = sum((row + 1) * count for row, count in header.rows())
    unpacker = zlib.decompressobj()
    # One byte more than there may be tells a bomb from a picture.
    pixels = unpacker.decompress(compressed, expected + 1)
    if len(pixels) != expected or not unpacker.eof:
        raise _NotPng
    start = 0
    for row, count in header.rows():
        stride = row + 1
        filters = pixels[start : start + stride * count : stride]
        if max(filters) > 4:
            raise _NotPng
        start += stride * count
    return pixels


def _chunk(name: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(body, zlib.crc32(name))
    return struct.pack(">I4s", len(body), name) + body + struct.pack(">I", checksum)
