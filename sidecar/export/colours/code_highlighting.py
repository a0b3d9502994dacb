"""Takes code apart into tokens, which every exporter shows in the colours of a code theme."""

from collections.abc import Iterator
from typing import Any, Final

from pygments import format as write_tokens
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# Lexers are regular expressions; some take more than linear time. What is longer stays plain.
MAX_CHARACTERS: Final = 20_000
MAX_LINE: Final = 2_000

_FORMATTER: Final = HtmlFormatter(nowrap=True)

Token = tuple[Any, str]


def tokens_of(code: str, language: str | None) -> Iterator[Token] | None:
    """Return the kinds and texts that *code* consists of, None if there is no way to tell them."""
    if language is None or len(code) > MAX_CHARACTERS:
        return None
    if max(map(len, code.split("\n"))) > MAX_LINE:
        return None
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    found: Iterator[Token] = lexer.get_tokens(code)
    return found


def highlighted(code: str, language: str | None) -> str | None:
    """Return *code* as escaped HTML with marks for :func:`sidecar.export.html.style.code_styles`.

    None if there is no way to mark it.
    """
    tokens = tokens_of(code, language)
    return None if tokens is None else str(write_tokens(tokens, _FORMATTER))
