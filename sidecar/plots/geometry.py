"""The geometry of a plot: lines and texts in pixels, the same for every kind of picture."""

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from sidecar.kernel.catalogue import Localised
from sidecar.plots.diagnostics import RENDER_FAILED, Diagnostic
from sidecar.plots.model import Curve, FunctionPlot
from sidecar.plots.sampling import (
    BASE_POINTS,
    Points,
    View,
    base_values,
    budget,
    fitted_range,
    sample,
)
from sidecar.plots.ticks import ticks

WIDTH: Final = 640
HEIGHT: Final = 400
FONT_SIZE: Final = 12.0
_ROW: Final = 20.0
_SWATCH: Final = 22.0
_GAP: Final = 18.0

Anchor = Literal["start", "middle", "end"]
Ink = Literal["text", "axis", "grid"]


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line of the frame, the grid or the axes."""

    start: tuple[float, float]
    end: tuple[float, float]
    ink: Ink


@dataclass(frozen=True, slots=True)
class Text:
    """Words; *at* is the middle of their height, at the side that *anchor* names."""

    words: str
    at: tuple[float, float]
    anchor: Anchor = "middle"
    upright: bool = False
    full: str | None = None


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """The pieces of a curve; *series* counts from 0, *color* wins over the theme's."""

    pieces: tuple[tuple[tuple[float, float], ...], ...]
    series: int
    color: str | None


@dataclass(frozen=True, slots=True)
class Geometry:
    """All there is to draw. ``(0, 0)`` is the upper left corner, y grows downwards."""

    width: int
    height: int
    frame: tuple[float, float, float, float]
    lines: tuple[Line, ...]
    curves: tuple[DrawnCurve, ...]
    texts: tuple[Text, ...]
    swatches: tuple[DrawnCurve, ...]
    diagnostics: tuple[Diagnostic, ...] = field(default=())


def text_width(words: str) -> float:
    """Return about how wide *words* are in pixels; no font is asked."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in words)
    return FONT_SIZE * (wide + 0.58 * (len(words) - wide))


def make_geometry(plot: FunctionPlot, width: int = WIDTH, height: int = HEIGHT) -> Geometry:
    """Sample the curves of *plot* and lay it out on *width* by *height* pixels and a legend below."""
    return _Layout(plot, width, height).geometry()


class _Layout:
    def __init__(self, plot: FunctionPlot, width: int, height: int) -> None:
        self._plot = plot
        self._width, self._height = width, height
        self._diagnostics: list[Diagnostic] = []
        self._range = plot.range or self._fitted()
        self._y_ticks = ticks(*self._range, max(3, height // 45))
        self._x_ticks = ticks(*plot.domain, max(3, width // 60))
        widest = max((text_width(label) for _, label in self._y_ticks), default=0.0)
        left = 14.0 + widest + (20.0 if plot.axes.y_label else 0.0)
        bottom = height - 28.0 - (20.0 if plot.axes.x_label else 0.0)
        self._frame = (left, 12.0, width - 16.0, bottom)

    def geometry(self) -> Geometry:
        left, top, right, bottom = self._frame
        view = View(self._plot.domain, self._range, right - left, bottom - top)
        curves = [self._curve(curve, index, view) for index, curve in enumerate(self._plot.curves)]
        texts = [*self._tick_labels(), *self._axis_labels()]
        swatches, labels, rows = self._legend()
        return Geometry(
            self._width,
            round(self._height + rows * _ROW + (8 if rows else 0)),
            self._frame,
            tuple(self._lines()),
            tuple(curves),
            (*texts, *labels),
            tuple(swatches),
            tuple(self._diagnostics),
        )

    # -- what is shown -------------------------------------------------------------------------

    def _fitted(self) -> tuple[float, float]:
        nodes = self._plot.nodes
        found: list[tuple[float, float]] = []
        for curve in self._plot.curves:
            count = min(BASE_POINTS, budget(curve.expression, nodes) // 2)
            values = base_values(curve.expression, self._plot.domain, count)
            if (limits := fitted_range(values)) is not None:
                found.append(limits)
        if not found:
            return -1.0, 1.0
        low, high = min(low for low, _ in found), max(high for _, high in found)
        # Rounding errors of a constant are no shape.
        if high - low <= 1e-9 * max(abs(low), abs(high)) or high == low:
            margin = max(1.0, abs(high) / 2)
        else:
            margin = (high - low) * 0.06
        return low - margin, high + margin

    def _curve(self, curve: Curve, index: int, view: View) -> DrawnCurve:
        points = budget(curve.expression, self._plot.nodes)
        pieces = sample(curve.expression, view, points)
        if not pieces:
            message = Localised("plot.undefined", {"source": curve.source[:60]})
            self._diagnostics.append(Diagnostic("warning", RENDER_FAILED, message, curve.position))
        clipped = [part for piece in pieces for part in self._clipped(piece)]
        return DrawnCurve(tuple(clipped), index, curve.color)

    def _to_pixels(self, x: float, y: float) -> tuple[float, float]:
        left, top, right, bottom = self._frame
        (x_low, x_high), (y_low, y_high) = self._plot.domain, self._range
        across = left + (x - x_low) / (x_high - x_low) * (right - left)
        return across, bottom - (y - y_low) / (y_high - y_low) * (bottom - top)

    def _clipped(self, piece: Points) -> Iterator[tuple[tuple[float, float], ...]]:
        """Yield what of a piece lies within the frame, in pixels."""
        _, top, _, bottom = self._frame
        pixels = [self._to_pixels(x, y) for x, y in piece]
        part: list[tuple[float, float]] = []
        if len(pixels) == 1 and top <= pixels[0][1] <= bottom:
            yield (pixels[0],)
        for start, end in pairwise(pixels):
            inside = _clip(start, end, top, bottom)
            if inside is None:
                continue
            if part and part[-1] != inside[0]:
                yield tuple(part)
                part = []
            part = part or [inside[0]]
            part.append(inside[1])
        if part:
            yield tuple(part)

    # -- around it -----------------------------------------------------------------------------

    def _lines(self) -> Iterator[Line]:
        left, top, right, bottom = self._frame
        across = [self._to_pixels(value, self._range[0])[0] for value, _ in self._x_ticks]
        down = [self._to_pixels(self._plot.domain[0], value)[1] for value, _ in self._y_ticks]
        if self._plot.axes.grid:
            yield from (Line((x, top), (x, bottom), "grid") for x in across)
            yield from (Line((left, y), (right, y), "grid") for y in down)
        if self._plot.domain[0] < 0 < self._plot.domain[1]:
            x, _ = self._to_pixels(0.0, self._range[0])
            yield Line((x, top), (x, bottom), "axis")
        if self._range[0] < 0 < self._range[1]:
            _, y = self._to_pixels(self._plot.domain[0], 0.0)
            yield Line((left, y), (right, y), "axis")
        yield from (Line((x, bottom), (x, bottom + 4), "axis") for x in across)
        yield from (Line((left - 4, y), (left, y), "axis") for y in down)

    def _tick_labels(self) -> Iterator[Text]:
        left, _, _, bottom = self._frame
        last = -math.inf
        for value, label in self._x_ticks:
            x, _ = self._to_pixels(value, self._range[0])
            half = text_width(label) / 2
            if x - half > last:
                yield Text(label, (x, bottom + 14))
                last = x + half + 6
        for value, label in self._y_ticks:
            _, y = self._to_pixels(self._plot.domain[0], value)
            yield Text(label, (left - 8, y), "end")

    def _axis_labels(self) -> Iterator[Text]:
        left, top, right, bottom = self._frame
        axes = self._plot.axes
        if axes.x_label:
            yield self._fitting(axes.x_label, ((left + right) / 2, bottom + 34), right - left)
        if axes.y_label:
            at = (12.0, (top + bottom) / 2)
            yield self._fitting(axes.y_label, at, bottom - top, upright=True)

    def _fitting(
        self, words: str, at: tuple[float, float], room: float, *, upright: bool = False
    ) -> Text:
        shown = _shortened(words, room)
        return Text(shown, at, "middle", upright, words if shown != words else None)

    def _legend(self) -> tuple[list[DrawnCurve], list[Text], int]:
        curves = self._plot.curves
        if len(curves) == 1 and not curves[0].label:
            return [], [], 0
        swatches, labels = [], []
        left, _, right, _ = self._frame
        x, row = left, 0
        for index, curve in enumerate(curves):
            words = curve.label or curve.source
            shown = _shortened(words, right - left - _SWATCH - 6)
            wide = _SWATCH + 6 + text_width(shown)
            if x > left and x + wide > right:
                x, row = left, row + 1
            y = self._height + 4 + row * _ROW + _ROW / 2
            swatches.append(DrawnCurve((((x, y), (x + _SWATCH, y)),), index, curve.color))
            full = words if shown != words else None
            labels.append(Text(shown, (x + _SWATCH + 6, y), "start", full=full))
            x += wide + _GAP
        return swatches, labels, row + 1


def _shortened(words: str, room: float) -> str:
    if text_width(words) <= room:
        return words
    while words and text_width(f"{words}…") > room:
        words = words[:-1]
    return f"{words}…"


def _clip(
    start: tuple[float, float], end: tuple[float, float], top: float, bottom: float
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the part of a line between two heights."""
    (x0, y0), (x1, y1) = start, end
    if min(y0, y1) > bottom or max(y0, y1) < top:
        return None

    def at(y: float) -> tuple[float, float]:
        return x0 + (x1 - x0) * ((y - y0) / (y1 - y0)), y

    first = at(top) if y0 < top else at(bottom) if y0 > bottom else start
    last = at(top) if y1 < top else at(bottom) if y1 > bottom else end
    return first, last
