"""The mathematical font, and another that has the characters which it lacks.

Imports what typesets formulas, and so is itself imported only when there is a formula.
"""

import functools
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ziafont.fonttypes import BBox
from ziafont.glyph import SimpleGlyph
from ziafont.svgpath import Cubic, Lineto, Moveto, Point, Quad
from ziamath.config import config
from ziamath.mathfont import MathFont
from ziamath.nodes.mrow import Mrow
from ziamath.tex import tex2mml
from ziamath.zmath import Math, fontname, loadedfonts

__all__ = ["Math", "font_with_fallback", "tex2mml"]

# Outlines where they are used, not symbols that are referred to.
config.svg2 = False

_measure = Mrow._get_height_nostretch  # noqa: SLF001 - mended, see below


def _measure_once(row: Mrow, line: list[Any], **how: Any) -> tuple[float, float]:
    """Return the height of a row without what stretches.

    The library measures a row by laying it out, and measures every row within it again while it does
    so: time doubles with each level. Within a measurement nothing stretches, so none is needed.
    """
    if how.get("nostretch"):
        return 0.0, 0.0
    measured: tuple[float, float] = _measure(row, line, **how)
    return measured


Mrow._get_height_nostretch = _measure_once  # type: ignore[assignment, method-assign]  # noqa: SLF001


_MOST_FACES = 12


class _ForeignGlyph(SimpleGlyph):
    """A glyph of another font, in the units of the mathematical one. Nothing is kerned with it."""

    def __init__(self, operators: list[Any], bbox: BBox, font: MathFont, width: float) -> None:
        super().__init__(0, operators, bbox, font)
        self._width = width

    def advance(self, nextchr: SimpleGlyph | None = None) -> int:  # noqa: ARG002 - as the library calls it
        return round(self._width)


class FallbackFont:
    """Gives outlines of characters; notes those that it lacks, too."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.missing: set[str] = set()

    @functools.cached_property
    def _font(self) -> Any:
        from fontTools.ttLib import TTFont, TTLibError  # noqa: PLC0415

        if self._path is None:
            return None
        try:
            # A collection holds the same characters as several regions write them.
            for number in range(_MOST_FACES if self._path.suffix.lower() == ".ttc" else 0):
                font = TTFont(self._path, lazy=True, fontNumber=number)
                if str(font["name"].getDebugName(1)).endswith(" SC"):
                    return font
                font.close()
        except (OSError, TTLibError):
            pass  # It has no face of that name; its first one will do.
        try:
            return TTFont(self._path, lazy=True, fontNumber=0)
        except (OSError, TTLibError):
            return None

    def glyph(self, character: str, font: MathFont) -> SimpleGlyph | None:
        """Return the glyph of *character* for use within *font*."""
        from fontTools.pens.boundsPen import BoundsPen  # noqa: PLC0415
        from fontTools.pens.recordingPen import DecomposingRecordingPen  # noqa: PLC0415

        name = self._font.getBestCmap().get(ord(character)) if self._font else None
        if name is None:
            self.missing.add(character)
            return None
        glyphs = self._font.getGlyphSet()
        scale = font.info.layout.unitsperem / self._font["head"].unitsPerEm
        pen, bounds = DecomposingRecordingPen(glyphs), BoundsPen(glyphs)
        glyphs[name].draw(pen)
        glyphs[name].draw(bounds)
        left, bottom, right, top = (scale * value for value in bounds.bounds or (0, 0, 0, 0))
        operators = [step for call, points in pen.value for step in _steps(call, points, scale)]
        return _ForeignGlyph(
            operators, BBox(left, right, bottom, top), font, scale * glyphs[name].width
        )


def _steps(call: str, points: tuple[Any, ...], scale: float) -> list[Any]:
    at: list[Any] = [Point(x * scale, y * scale) for x, y in points]  # type: ignore[no-untyped-call]
    if call == "moveTo":
        return [Moveto(at[0])]
    if call == "lineTo":
        return [Lineto(at[0])]
    if call == "curveTo":
        return [Cubic(*at)]
    if call == "qCurveTo":
        # Between two control points lies a point of the curve.
        *controls, end = at
        middles = [(a + b) / 2 for a, b in itertools.pairwise(controls)]
        return [Quad(*pair) for pair in zip(controls, [*middles, end], strict=True)]
    return []


class FormulaFont(MathFont):
    """The mathematical font. A character that it lacks comes from *fallback*."""

    def __init__(self, name: str, fallback: FallbackFont) -> None:
        super().__init__(fontname)
        self.name = name
        self.fallback = fallback

    def glyph(self, char: str) -> SimpleGlyph:
        """Return the glyph of a character."""
        if not self.glyphindex(char):
            other = self.fallback.glyph(char, self)
            if other is not None:
                return other
        return super().glyph(char)


@dataclass(frozen=True, slots=True)
class NamedFont:
    """A font, and the name under which the library knows it."""

    name: str
    fallback: FallbackFont


@functools.lru_cache(maxsize=2)
def font_with_fallback(other: Path | None) -> NamedFont:
    """Return the mathematical font with *other* behind it, known to the library."""
    fallback = FallbackFont(other)
    name = f"formulas, {other}"
    loadedfonts[name] = FormulaFont(name, fallback)
    return NamedFont(name, fallback)
