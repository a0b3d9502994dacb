"""Pieces of WordprocessingML."""

import re
from dataclasses import dataclass
from typing import Any, Final

from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement

from sidecar.export.characters import allowed

Element = Any  # An element of lxml, which has no types of its own.

_PARTS: Final = re.compile(r"[\t\n]|[^\t\n]+")
_WIDE: Final = r"\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
_SOFT: Final = re.compile(rf"(?<=[{_WIDE}])\n(?=[{_WIDE}])")


@dataclass(frozen=True, slots=True)
class Format:
    """How letters look."""

    bold: bool = False
    italic: bool = False
    struck: bool = False
    style: str | None = None
    lowered: float = 0.0  # points below the line


PLAIN: Final = Format()


def w(tag: str, *children: Element, **attributes: str | int) -> Element:
    """Return the element ``w:tag``; attributes are of the same namespace."""
    element = OxmlElement(f"w:{tag}")
    for name, value in attributes.items():
        element.set(qn(f"w:{name}"), str(value))
    for child in children:
        element.append(child)
    return element


def run(words: str, format_: Format = PLAIN) -> Element:
    """Return words; a line break within them breaks the line."""
    element = _run(format_)
    for part in _PARTS.findall(allowed(words)):
        if part == "\n":
            element.append(w("br"))
        elif part == "\t":
            element.append(w("tab"))
        else:
            text = w("t")
            text.set(qn("xml:space"), "preserve")
            text.text = part
            element.append(text)
    return element


def run_of(child: Element, format_: Format = PLAIN) -> Element:
    """Return a run that holds something else than words."""
    element = _run(format_)
    element.append(child)
    return element


def _run(format_: Format) -> Element:
    element = w("r")
    properties = []
    if format_.style:
        properties.append(w("rStyle", val=format_.style))
    if format_.bold:
        properties += [w("b"), w("bCs")]
    if format_.italic:
        properties += [w("i"), w("iCs")]
    if format_.struck:
        properties.append(w("strike"))
    if half_points := round(format_.lowered * 2):
        properties.append(w("position", val=-half_points))
    if properties:
        element.append(w("rPr", *properties))
    return element


def soft_breaks_as_blanks(words: str) -> str:
    """Return *words* with line breaks of the source as blanks, or as nothing between Chinese characters."""
    return _SOFT.sub("", words).replace("\n", " ")


def paragraph(style: str | None = None, *properties: Element) -> Element:
    """Return an empty paragraph. *properties* must be in the order of the schema."""
    named = [w("pStyle", val=style)] if style else []
    kept = [*named, *properties]
    return w("p", w("pPr", *kept)) if kept else w("p")


def field(code: str) -> list[Element]:
    """Return the runs of a field that the reader's program fills."""
    instruction = w("instrText")
    instruction.set(qn("xml:space"), "preserve")
    instruction.text = f" {code} "
    return [
        run_of(w("fldChar", fldCharType="begin")),
        run_of(instruction),
        run_of(w("fldChar", fldCharType="separate")),
        run("1"),
        run_of(w("fldChar", fldCharType="end")),
    ]
