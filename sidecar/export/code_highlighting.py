"""Marks code for :func:`sidecar.export.html_style.code_styles`."""

from typing import Final

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# Lexers are regular expressions; some take more than linear time. What is longer stays plain.
MAX_CHARACTERS: Final = 20_000
MAX_LINE: Final = 2_000

_FORMATTER: Final = HtmlFormatter(nowrap=True)


def highlighted(code: str, language: str | None) -> str | None:
    """Return *code* as escaped HTML with marks, None if there is no way to mark it."""
    if language is None or len(code) > MAX_CHARACTERS:
        return None
    if max(map(len, code.split("\n"))) > MAX_LINE:
        return None
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return str(highlight(code, lexer, _FORMATTER))
