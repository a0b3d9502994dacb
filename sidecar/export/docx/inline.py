"""Writes what stands within a paragraph of a Word document."""

import dataclasses
import io
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote

from docx.image.exceptions import InvalidImageStreamError, UnrecognizedImageError
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.shared import Emu

from sidecar.export.characters import allowed
from sidecar.export.document import Node
from sidecar.export.docx.pictures import (
    EMU_A_PIXEL,
    EMU_A_POINT,
    FORMULA_POINTS,
    formula_png,
    word_picture,
)
from sidecar.export.docx.template import CODE, HYPERLINK, Template
from sidecar.export.docx.xml import PLAIN, Element, Format, run, run_of, soft_breaks_as_blanks, w
from sidecar.export.links import leads_out
from sidecar.export.notices import Notices
from sidecar.export.pictures.figures import Figures, NoPicture
from sidecar.export.pictures.formulas import Formula
from sidecar.export.pictures.images import Picture, PictureRefused

_MOST_ADDRESS: Final = 2000

FootnoteReference = Callable[[Node], list[Element]]


class InlineWriter:
    """Writes runs into one part of the document: its body, or its footnotes."""

    def __init__(
        self,
        part: Any,
        template: Template,
        figures: Figures,
        notices: Notices,
        names: dict[str, str],
        footnote: FootnoteReference,
    ) -> None:
        """*names* are the bookmarks of the headings, by the names that links use."""
        self._part = part
        self._template = template
        self._figures = figures
        self._notices = notices
        self._names = names
        self._footnote = footnote

    def runs(self, node: Node, format_: Format = PLAIN) -> Iterator[Element]:
        """Yield the runs of the children of *node*."""
        for child in node.children:
            yield from self._node(child, format_)

    def _node(self, node: Node, format_: Format) -> Iterator[Element]:
        match node.type:
            case "text":
                yield from self._text(node, format_)
            case "strong":
                yield from self.runs(node, dataclasses.replace(format_, bold=True))
            case "emphasis":
                if node.attributes.get("style") == "strikethrough":
                    yield from self.runs(node, dataclasses.replace(format_, struck=True))
                else:
                    yield from self.runs(node, dataclasses.replace(format_, italic=True))
            case "link":
                yield from self._link(node, format_)
            case "image":
                yield from self._image(node, format_)
            case "math_inline" | "math_block":
                yield from self.formula(node, format_)
            case _:
                yield from self.runs(node, format_)

    def _text(self, node: Node, format_: Format) -> Iterator[Element]:
        words = node.text or ""
        if node.attributes.get("break"):
            yield run("\n", format_)
        elif node.attributes.get("code"):
            yield run(words.replace("\n", " "), dataclasses.replace(format_, style=CODE))
        else:
            yield run(soft_breaks_as_blanks(words), format_)

    def _link(self, node: Node, format_: Format) -> Iterator[Element]:
        address = str(node.attributes["href"])
        if node.attributes.get("footnote") is not None:
            yield from self._footnote(node)
            return
        if "back" in node.attributes:
            return
        linked = dataclasses.replace(format_, style=format_.style or HYPERLINK)
        name = self._names.get(unquote(address)[1:]) if address.startswith("#") else None
        if name is not None:
            yield w("hyperlink", *self.runs(node, linked), anchor=name, history=1)
        elif leads_out(address) and len(address) <= _MOST_ADDRESS:
            relation = self._part.relate_to(
                allowed(address), RELATIONSHIP_TYPE.HYPERLINK, is_external=True
            )
            element = w("hyperlink", *self.runs(node, linked), history=1)
            element.set(qn("r:id"), relation)
            yield element
        else:
            self._notices.warn(node, "warning.export_link_removed")
            yield from self.runs(node, format_)

    # -- pictures ------------------------------------------------------------------------------

    def _image(self, node: Node, format_: Format) -> Iterator[Element]:
        found = self._figures.image(node)
        if isinstance(found, NoPicture):
            yield run(found.words, dataclasses.replace(format_, italic=True))
            return
        alternative = str(node.attributes["alt"])
        try:
            yield self.picture(found, alternative)
        except PictureRefused as refused:
            self._figures.refuse(node, refused.reason)
            yield run(
                alternative or str(node.attributes["src"])[:120],
                dataclasses.replace(format_, italic=True),
            )

    def picture(self, picture: Picture, alternative: str, scale: float = 1.0) -> Element:
        """Return a run with a picture, made smaller if it is larger than the page.

        Raises :class:`PictureRefused` for one that Word wouldn't take.
        """
        content, width, height = word_picture(picture)
        return self._inline(
            content, width * EMU_A_PIXEL * scale, height * EMU_A_PIXEL * scale, alternative
        )

    def _inline(
        self, content: bytes, width: float, height: float, alternative: str, format_: Format = PLAIN
    ) -> Element:
        room = self._template
        fit = min(1.0, room.width / width, 0.9 * room.height / height)
        size = (Emu(max(1, round(width * fit))), Emu(max(1, round(height * fit))))
        try:
            inline = self._part.new_pic_inline(io.BytesIO(content), *size)
        except (
            InvalidImageStreamError,
            UnrecognizedImageError,
            OpcError,
            ValueError,
            KeyError,
        ) as error:
            raise PictureRefused("unreadable") from error
        inline.docPr.set("descr", allowed(alternative))
        for side in ("distT", "distB", "distL", "distR"):
            inline.set(side, "0")
        return run_of(w("drawing", inline), format_)

    def formula(self, node: Node, format_: Format = PLAIN) -> Iterator[Element]:
        """Yield a formula: the client's picture, a typeset one, or its source."""
        source = (node.text or "").strip()
        try:
            if (given := self._figures.given(node)) is not None:
                yield self.picture(Picture("image/png", given), source)
                return
            if (formula := self._figures.formula(node)) is not None:
                yield self._formula(formula, source, format_)
                return
        except PictureRefused:
            self._notices.warn(node, "warning.export_formula_unsupported")
        sign = "$" if node.type == "math_inline" else "$$"
        yield run(f"{sign}{source}{sign}", dataclasses.replace(format_, style=CODE))

    def _formula(self, formula: Formula, source: str, format_: Format) -> Element:
        em = FORMULA_POINTS * EMU_A_POINT
        # A picture stands on the line of the text; what lies below it is lowered with it.
        lowered = dataclasses.replace(format_, style=None, lowered=formula.depth * FORMULA_POINTS)
        return self._inline(
            formula_png(formula), formula.width * em, formula.height * em, source, lowered
        )
