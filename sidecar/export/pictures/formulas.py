"""Typesets formulas: LaTeX becomes outlines, which need no font where they are shown."""

import functools
import re
import warnings
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree as ET

from sidecar.export.fonts import Fonts

_SIZE: Final = 20.0  # units an em; the library takes lengths in points for a size like this
_MARGIN: Final = 0.03  # of an em; strokes may reach beyond the box
_CACHED: Final = 512

# What these say is about the page, which is laid out elsewhere.
_DROPPED: Final = re.compile(r"\\(?:label|ref|eqref)\s*\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])")
_EQUATION: Final = re.compile(r"\\(?:begin|end)\s*\{(?:equation|displaymath|math)\*?\}")
_ALIGNED: Final = re.compile(r"\\(begin|end)\s*\{(align|gather|multline|eqnarray)\*?\}")
_COMMENT: Final = re.compile(r"(?<!\\)%[^\n]*")
_NAMES: Final = {
    "align": "aligned",
    "gather": "gathered",
    "multline": "gathered",
    "eqnarray": "aligned",
}
# Rows of aligned formulas, which would nearly touch.
_ROWS: Final = ('rowspacing="3pt"', 'rowspacing="8pt"')
_NO_COMMAND: Final = re.compile(r"\\[A-Za-z]")


class FormulaUnsupported(Exception):
    """A formula can't be typeset."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A filled shape. *path* is SVG path data; *color* None: that of the text."""

    path: str
    color: str | None


@dataclass(frozen=True, slots=True)
class Formula:
    """A typeset formula. Sizes are in ems; *depth* is what lies below the line of the text."""

    outlines: tuple[Outline, ...]
    left: float
    width: float
    height: float
    depth: float

    @property
    def view_box(self) -> tuple[float, float, float, float]:
        """The part of the plane that the outlines cover, in their units: x, y, width, height."""
        top = (self.depth - self.height) * _SIZE
        return self.left * _SIZE, top, self.width * _SIZE, self.height * _SIZE


class Formulas:
    """Typesets formulas with the bundled mathematical font, and Chinese words with another."""

    def __init__(self, fonts: Fonts) -> None:
        self._fonts = fonts
        self._cached = functools.lru_cache(maxsize=_CACHED)(self._typeset)

    def typeset(self, source: str, *, display: bool) -> Formula:
        """Return the formula of a LaTeX source. Raises :class:`FormulaUnsupported`."""
        formula = self._cached(source.strip(), display)
        if formula is None:
            raise FormulaUnsupported
        return formula

    def _typeset(self, source: str, display: bool) -> Formula | None:
        try:
            library = _library()
            font = library.font_with_fallback(self._fonts.chinese())
            font.fallback.missing.clear()
            markup = library.tex2mml(_prepared(source), inline=not display).replace(*_ROWS)
            if not source or _has_unknown_command(markup):
                return None
            drawn = library.Math(markup, size=_SIZE, font=font.name, margin=0)
            formula = _formula(drawn)
        except (RecursionError, MemoryError):
            return None
        except Exception:  # noqa: BLE001 - the library raises whatever its parts happen to raise
            return None
        return None if font.fallback.missing else formula


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    """Return the module with what typesets formulas; loaded only when there is a formula."""
    with warnings.catch_warnings():
        # It finds its own files in a way that is going out of use.
        warnings.simplefilter("ignore", DeprecationWarning)
        from sidecar.export.pictures import formula_fonts  # noqa: PLC0415
    return formula_fonts


def _prepared(source: str) -> str:
    text = _EQUATION.sub("", _DROPPED.sub("", _COMMENT.sub("", source)))
    return _ALIGNED.sub(lambda match: f"\\{match[1]}{{{_NAMES[match[2]]}}}", text)


def _has_unknown_command(markup: str) -> bool:
    """Whether a command was taken for words, as happens to those that aren't known."""
    root = ET.fromstring(markup.replace("&", "&amp;"))  # noqa: S314 - markup of our own making
    return any(_NO_COMMAND.search(element.text or "") for element in root.iter())


def _formula(drawn: Any) -> Formula:
    root = ET.fromstring(drawn.svg())  # noqa: S314 - markup of our own making
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    outlines: list[Outline] = []
    for element in root.iter():
        path = _path_of(element)
        if path is None:
            continue
        fill = element.attrib.get("fill", "black")
        ink = element.attrib.get("stroke", "black") if fill == "none" else fill
        color = None if ink == "black" else ink
        if outlines and outlines[-1].color == color:
            outlines[-1] = Outline(f"{outlines[-1].path} {path}", color)
        else:
            outlines.append(Outline(path, color))
    bottom = top + height
    return Formula(
        tuple(outlines),
        left / _SIZE - _MARGIN,
        width / _SIZE + 2 * _MARGIN,
        height / _SIZE + 2 * _MARGIN,
        bottom / _SIZE + _MARGIN,
    )


def _path_of(element: ET.Element) -> str | None:
    tag = element.tag.rpartition("}")[2]
    if tag in ("svg", "g", "title", "desc"):
        return None
    if tag == "path":
        if element.attrib.get("stroke", "none") != "none" and "fill" not in element.attrib:
            raise FormulaUnsupported
        return " ".join(element.attrib["d"].split())
    if tag == "rect":
        if element.attrib.get("fill") == "none":
            return _frame(element)
        x, y, width, height = (float(element.attrib[n]) for n in ("x", "y", "width", "height"))
        return f"M {x:g} {y:g} L {x + width:g} {y:g} L {x + width:g} {y + height:g} L {x:g} {y + height:g} Z"
    raise FormulaUnsupported  # Nothing that is drawn may get lost.


def _frame(element: ET.Element) -> str:
    """Return the outline of an unfilled box."""
    x, y, width, height = (float(element.attrib[n]) for n in ("x", "y", "width", "height"))
    half = float(element.attrib.get("stroke-width", "4")) / 2
    rings = []
    for grown, clockwise in ((half, True), (-half, False)):
        left, top, right, bottom = x - grown, y - grown, x + width + grown, y + height + grown
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        points = " L ".join(f"{a:g} {b:g}" for a, b in (corners if clockwise else corners[::-1]))
        rings.append(f"M {points} Z")
    return " ".join(rings)
