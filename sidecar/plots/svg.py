"""Draws a geometry as SVG. Its text is the only thing that comes from a source, and it is escaped."""

from collections.abc import Iterator
from html import escape
from typing import Final

from sidecar.plots.geometry import DrawnCurve, Geometry, Line, Text
from sidecar.plots.themes import ChartColours

FONT: Final = (
    "'Noto Sans SC', 'Noto Sans CJK SC', system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', "
    "'WenQuanYi Micro Hei', 'DejaVu Sans', sans-serif"
)


def draw_svg(geometry: Geometry, colours: ChartColours, description: str) -> str:
    """Return the picture; *description* is read to those who can't see it."""
    return "".join(_parts(geometry, colours, description))


def _parts(geometry: Geometry, colours: ChartColours, description: str) -> Iterator[str]:
    width, height = geometry.width, geometry.height
    tokens = ";".join(f"{name}:{value}" for name, value in colours.tokens().items())
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{_escaped(description)}" '
        f'style="{tokens}" font-family="{FONT}" font-size="12">'
    )
    yield f'<rect width="{width}" height="{height}" fill="{colours.background}"/>'
    for ink, wide in (("grid", "1"), ("axis", "1.25")):
        path = "".join(_line(line) for line in geometry.lines if line.ink == ink)
        if path:
            colour = colours.grid if ink == "grid" else colours.axis
            yield f'<path class="{ink}" d="{path}" fill="none" stroke="{colour}" stroke-width="{wide}"/>'
    left, top, right, bottom = geometry.frame
    yield (
        f'<rect class="frame" x="{_n(left)}" y="{_n(top)}" width="{_n(right - left)}" '
        f'height="{_n(bottom - top)}" fill="none" stroke="{colours.axis}" stroke-width="1"/>'
    )
    for kind, curves in (("curve", geometry.curves), ("swatch", geometry.swatches)):
        for curve in curves:
            yield _curve(kind, curve, colours)
    yield f'<g fill="{colours.text}">'
    yield from map(_text, geometry.texts)
    yield "</g></svg>"


def _n(value: float) -> str:
    """Return a coordinate as short as can be."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _escaped(words: str) -> str:
    # Characters that XML can't hold, not even as references.
    kept = "".join(
        c if c >= " " and not ("\ud800" <= c <= "\udfff" or c in "\ufffe\uffff") else "\ufffd"
        for c in words
    )
    return escape(kept, quote=True)


def _line(line: Line) -> str:
    return f"M{_n(line.start[0])} {_n(line.start[1])}L{_n(line.end[0])} {_n(line.end[1])}"


def _curve(kind: str, curve: DrawnCurve, colours: ChartColours) -> str:
    colour = curve.color or colours.series[curve.series % len(colours.series)]
    path = "".join(_piece(piece) for piece in curve.pieces)
    return (
        f'<path class="{kind} series-{curve.series + 1}" d="{path}" fill="none" stroke="{colour}" '
        'stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>'
    )


def _piece(piece: tuple[tuple[float, float], ...]) -> str:
    first, *rest = piece
    # A line of no length is a dot, with round ends.
    points = rest or [first]
    return f"M{_n(first[0])} {_n(first[1])}L" + " ".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _text(text: Text) -> str:
    x, y = text.at
    # The middle of a line's height is a third of an em above its base.
    turned = f' transform="rotate(-90 {_n(x)} {_n(y)})"' if text.upright else ""
    title = f"<title>{_escaped(text.full)}</title>" if text.full else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y + 4)}" text-anchor="{text.anchor}"{turned}>'
        f"{title}{_escaped(text.words)}</text>"
    )
