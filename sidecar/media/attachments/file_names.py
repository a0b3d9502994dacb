"""File names that a client sent, made safe to keep and to show."""

import unicodedata
from typing import Final

FALLBACK: Final = "file"
LONGEST: Final = 200
# Controls, and characters that turn the reading direction: they can make a name look like another.
_UNSAFE_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING: Final = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe_file_name(sent: str) -> str:
    """Return the base name of *sent*: no path parts, no control characters, at most 200 characters.

    Unicode is kept (composed form). A name of nothing but such parts becomes ``file``.
    """
    base = sent.replace("\\", "/").rpartition("/")[2]
    kept = "".join(
        character
        for character in unicodedata.normalize("NFC", base)
        if unicodedata.category(character) not in _UNSAFE_CATEGORIES and character not in _TURNING
    )
    # "C:recording.wav" names a drive, and "a.wav:stream" a part of a file, on Windows.
    if len(kept) > 1 and kept[1] == ":" and kept[0].isascii() and kept[0].isalpha():
        kept = kept[2:]
    kept = kept.strip().rstrip(". ")
    if not kept.strip("."):
        return FALLBACK
    suffix = suffix_of(kept)
    return kept if len(kept) <= LONGEST else kept[: LONGEST - len(suffix)] + suffix


def suffix_of(file_name: str) -> str:
    """Return the suffix in lower case with its dot; "" if there is none."""
    stem, dot, suffix = file_name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem and len(suffix) <= 10 else ""


def stem_of(file_name: str) -> str:
    """Return the name without its suffix."""
    suffix = suffix_of(file_name)
    return file_name[: len(file_name) - len(suffix)] if suffix else file_name
