"""Names for downloads that every system takes."""

import re
import unicodedata
from typing import Final

FALLBACK: Final = "export"
MAX_CHARACTERS: Final = 100
MAX_BYTES: Final = 200

_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*]')
_RESERVED: Final = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE
)


def file_name(title: str | None, suffix: str) -> str:
    """Return a file name made of *title* that Windows, macOS and Linux take, ending in *suffix*."""
    kept = "".join(
        " " if unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cc") else character
        for character in unicodedata.normalize("NFC", title or "")
        # Format characters can turn the direction in which a name is read.
        if unicodedata.category(character) not in ("Cf", "Cs", "Co", "Cn")
    )
    stem = " ".join(_FORBIDDEN.sub("_", kept).split())[:MAX_CHARACTERS]
    while len(stem.encode()) > MAX_BYTES:
        stem = stem[:-1]
    stem = stem.strip(". ")
    if _RESERVED.fullmatch(stem.partition(".")[0].strip()):
        stem = f"_{stem}"
    return f"{stem or FALLBACK}{suffix}"
