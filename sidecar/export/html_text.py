"""Small pieces of an HTML document: escaped text, names of headings, the language, metadata."""

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from sidecar.export.document import Document, Metadata
from sidecar.kernel.catalogue import Locale, text

# Not allowed in HTML text, not even as a reference.
_NOT_TEXT: Final = dict.fromkeys(
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
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_KANA: Final = re.compile(r"[\u3041-\u30ff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")


def allowed(value: str) -> str:
    """Return *value* with the characters replaced that HTML doesn't allow."""
    return value.translate(_NOT_TEXT)


def escaped(value: str) -> str:
    """Return *value* as HTML text that is also safe within quotes."""
    return escape(allowed(value), quote=True)


def anchor_of(words: str) -> str:
    """Return the name under which links within the document find a heading."""
    return "-".join(re.sub(r"[^\w\s-]", "", words.lower()).split())


def language_of(document: Document) -> str | None:
    """Guess the language from the script, as fonts and line breaks depend on it."""
    words = f"{document.title or ''}{document.root.plain_text()[:20_000]}"
    if len(_KANA.findall(words)) * 20 > len(words):
        return "ja"
    if len(_HANGUL.findall(words)) * 10 > len(words):
        return "ko"
    if len(_HAN.findall(words)) * 10 > len(words):
        return "zh-CN"
    return None


def metadata_list(metadata: Metadata, locale: Locale) -> Iterator[str]:
    """Yield a list of what is known of a note."""
    entries = [
        ("export.tags", ", ".join(metadata.tags)),
        ("export.created", metadata.created_at),
        ("export.updated", metadata.updated_at),
    ]
    yield '<dl class="metadata">\n'
    for key, value in entries:
        if value:
            yield f"<dt>{escaped(text(key, locale))}</dt><dd>{escaped(value)}</dd>\n"
    yield "</dl>\n"
