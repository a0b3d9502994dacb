"""The header that tells a client what to call a file, and whether to show or to save it."""

import re
import unicodedata
from typing import Final
from urllib.parse import quote

FALLBACK: Final = "file"


def content_disposition(name: str, *, inline: bool = False) -> str:
    """Return the value of ``Content-Disposition`` for a file called *name*.

    Clients that don't know the extended form (RFC 6266) get the name's ASCII letters.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    stem, dot, suffix = plain.rpartition(".")
    plain = f"{stem.strip('. ') or FALLBACK}{dot}{suffix}"
    plain = re.sub(r'[^ -~]|["\\%]', "_", plain)
    shown = "inline" if inline else "attachment"
    return f"{shown}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
