"""Writes code for Word: each kind of token has a character style, in the colours of a code theme."""

import itertools
from collections.abc import Iterator
from typing import Any

from pygments.token import Literal, Name, Token

from sidecar.export.characters import allowed
from sidecar.export.colours.code_highlighting import tokens_of
from sidecar.export.colours.code_themes import style_of
from sidecar.export.colours.themes import THEMES, CodeTheme, readable
from sidecar.export.docx.template import SURFACE, Template
from sidecar.export.docx.xml import PLAIN, Element, Format, run


class CodeWriter:
    """Writes the code of one document; its styles are made as they are needed."""

    def __init__(self, template: Template, theme: CodeTheme) -> None:
        self._template = template
        self._theme = style_of(theme)
        looks = (self._theme.style_for_token(kind) for kind in (Name, Literal))
        self._plain = next((look["color"] for look in looks if look["color"]), None)
        self._formats: dict[Any, Format] = {}

    def runs(self, code: str, language: str | None) -> Iterator[Element]:
        """Yield the runs of a block of code."""
        code = allowed(code.removesuffix("\n"))
        tokens = tokens_of(code, language)
        if tokens is None:
            yield run(code)
            return
        for format_, group in itertools.groupby(tokens, lambda token: self._format(token[0])):
            yield run("".join(words for _, words in group), format_)

    def _format(self, kind: Any) -> Format:
        if kind not in self._formats:
            self._formats[kind] = self._new_format(kind)
        return self._formats[kind]

    def _new_format(self, kind: Any) -> Format:
        look = self._theme.style_for_token(kind)
        colour = look["color"]
        plain = colour in (None, self._plain) and not look["bold"] and not look["italic"]
        if plain:
            return PLAIN
        # A kind that looks like the wider one that it belongs to has the style of that.
        wider = kind.parent
        if wider not in (None, Token) and look == self._theme.style_for_token(wider):
            return self._format(wider)
        shown = readable(f"#{colour}", f"#{SURFACE}", THEMES["light"].text) if colour else None
        name = "Code" + "".join(kind)
        self._template.add_code_style(
            name, shown, bold=bool(look["bold"]), italic=bool(look["italic"])
        )
        return Format(style=name)
