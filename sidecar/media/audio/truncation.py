"""Tells whether a recording's file was cut off, by what its container says of itself.

FFmpeg fits the length of some containers to what is left of the file, so a cut can't be seen in it.
"""

import struct
from pathlib import Path
from typing import BinaryIO, Final

# Sizes that writers put down who don't know the length yet.
_UNKNOWN_RIFF_SIZES: Final = frozenset({0, 0xFFFFFFFF, 0x7FFFFFFF})
_OGG_PAGE: Final = b"OggS"
_LONGEST_OGG_PAGE: Final = 65_307
_MP3_HEAD_BYTES: Final = 4096


def missing_wav_bytes(path: Path) -> int:
    """Return how many bytes a RIFF file lacks of the size that its header tells."""
    with path.open("rb") as file:
        head = file.read(8)
    if len(head) < 8 or head[:4] != b"RIFF":
        return 0
    told = struct.unpack("<I", head[4:])[0]
    return 0 if told in _UNKNOWN_RIFF_SIZES else max(0, told + 8 - path.stat().st_size)


def ends_inside_ogg_page(path: Path) -> bool:
    """Whether an Ogg file doesn't end with a whole page."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _LONGEST_OGG_PAGE))
        tail = file.read()
    start = tail.rfind(_OGG_PAGE)
    if start < 0:
        return True
    page = tail[start:]
    if len(page) < 27 or len(page) < 27 + page[26]:
        return True
    # Something else behind the last page is what is left of pages that were overwritten.
    return len(page) != 27 + page[26] + sum(page[27 : 27 + page[26]])


def mp3_tells_its_length(path: Path) -> bool:
    """Whether an MP3 file counts its frames at its beginning; else its length is an estimate."""
    with path.open("rb") as file:
        _skip_id3(file)
        head = file.read(_MP3_HEAD_BYTES)
    return any(mark in head for mark in (b"Xing", b"Info", b"VBRI"))


def _skip_id3(file: BinaryIO) -> None:
    head = file.read(10)
    if len(head) == 10 and head[:3] == b"ID3":
        size = 0
        for part in head[6:10]:
            size = size << 7 | part & 0x7F
        file.seek(10 + size)
    else:
        file.seek(0)
