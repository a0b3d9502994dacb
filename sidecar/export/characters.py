"""The characters that documents may hold."""

from typing import Final

# Not allowed in HTML text, not even as a reference.
_NOT_TEXT: Final[dict[int, str]] = dict.fromkeys(
    [
        *range(0x09),
        0x0B,
        *range(0x0E, 0x20),
        *range(0x7F, 0xA0),
        *range(0xD800, 0xE000),
        0xFFFE,
        0xFFFF,
    ],
    "\ufffd",
)
# A form feed is white space in HTML, and not allowed in the XML of a Word document.
_REPLACED: Final = {**_NOT_TEXT, 0x0C: " "}


def allowed(value: str) -> str:
    """Return *value* with the characters replaced that HTML or XML doesn't allow."""
    return value.translate(_REPLACED)
