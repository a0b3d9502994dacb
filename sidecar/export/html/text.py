"""Small pieces of an HTML document: escaped text, the language, metadata."""

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from sidecar.export.characters import allowed
from sidecar.export.document import Document, Metadata
from sidecar.kernel.catalogue import Locale, text

_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_KANA: Final = re.compile(r"[\u3041-\u30ff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")


def escaped(value: str) -> str:
    """Return *value* as HTML text that is also safe within quotes."""
    return escape(allowed(value), quote=True)


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
    yield '<dl class="metadata">\n'
    for key, value in metadata.entries():
        yield f"<dt>{escaped(text(key, locale))}</dt><dd>{escaped(value)}</dd>\n"
    yield "</dl>\n"
