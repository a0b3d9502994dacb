"""Room between blocks of a Word document that would otherwise run into one another."""

from dataclasses import dataclass

from docx.oxml.ns import qn

from sidecar.export.document import Node
from sidecar.export.docx.template import CALLOUT, CALLOUT_TITLE, CODE_BLOCK
from sidecar.export.docx.xml import Element, paragraph, w


@dataclass(slots=True)
class Before:
    """What was written last."""

    node: Node | None = None
    element: Element = None


def gap() -> Element:
    """Return a paragraph that only takes room."""
    return paragraph(None, w("spacing", after=60, line=120, lineRule="auto"))


def joins(before: Before, node: Node, element: Element) -> bool:
    """Whether Word would draw one box around two blocks, or one line beside them."""
    styles = {_style_of(before.element), _style_of(element)}
    if styles == {CODE_BLOCK}:
        return True
    quotes = before.node is not None and before.node.type == node.type == "blockquote"
    return quotes and styles <= {"Quote", CALLOUT, CALLOUT_TITLE}


def _style_of(element: Element) -> str | None:
    style = element.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    return None if style is None else style.get(qn("w:val"))
