"""Draws a geometry as a PNG, for documents that take no vectors."""

import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.plots.geometry import FONT_SIZE, DrawnCurve, Geometry, Text
from sidecar.plots.themes import ChartColours

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

SCALE: Final = 2
_SMOOTHING: Final = 2
_MOST_FACES: Final = 12

FontFor = Callable[[str], Path | None]
"""Gives a font file that has the characters of a text."""


def draw_png(geometry: Geometry, colours: ChartColours, font_for: FontFor) -> bytes:
    """Return the picture with ``SCALE`` pixels for each of the geometry's, in both directions."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - not needed before ready

    factor = SCALE * _SMOOTHING
    size = (geometry.width * factor, geometry.height * factor)
    large = Image.new("RGB", size, colours.background)
    draw = ImageDraw.Draw(large)
    for ink, colour in (("grid", colours.grid), ("axis", colours.axis)):
        for line in geometry.lines:
            if line.ink == ink:
                draw.line(_scaled([line.start, line.end], factor), colour, factor)
    left, top, right, bottom = geometry.frame
    draw.rectangle(
        [left * factor, top * factor, right * factor, bottom * factor],
        outline=colours.axis,
        width=factor,
    )
    for curve in (*geometry.curves, *geometry.swatches):
        _draw_curve(draw, curve, colours, factor)
    image = large.reduce(_SMOOTHING)
    for text in geometry.texts:
        _draw_text(image, text, colours.text, font_for)
    output = io.BytesIO()
    image.save(output, "PNG", compress_level=4)
    return output.getvalue()


def _scaled(points: list[tuple[float, float]], factor: int) -> list[tuple[float, float]]:
    return [(x * factor, y * factor) for x, y in points]


def _draw_curve(draw: "ImageDraw", curve: DrawnCurve, colours: ChartColours, factor: int) -> None:
    colour = curve.color or colours.series[curve.series % len(colours.series)]
    for piece in curve.pieces:
        points = _scaled(list(piece), factor)
        if len(points) == 1:
            (x, y) = points[0]
            draw.ellipse([x - factor, y - factor, x + factor, y + factor], colour)
        else:
            draw.line(points, colour, 2 * factor, joint="curve")


def _draw_text(image: "Image", text: Text, colour: str, font_for: FontFor) -> None:
    from PIL import Image as Images  # noqa: PLC0415
    from PIL import ImageDraw  # noqa: PLC0415

    font = _font(font_for(text.words))
    x, y = text.at[0] * SCALE, text.at[1] * SCALE
    anchor = {"start": "lm", "middle": "mm", "end": "rm"}[text.anchor]
    if not text.upright:
        ImageDraw.Draw(image).text((x, y), text.words, colour, font, anchor)
        return
    left, top, right, bottom = font.getbbox(text.words, anchor="mm")
    mask = Images.new("L", (round(right - left) + 4, round(bottom - top) + 4))
    centre = (mask.width / 2, mask.height / 2)
    ImageDraw.Draw(mask).text(centre, text.words, 255, font, "mm")
    turned = mask.transpose(Images.Transpose.ROTATE_90)
    corner = (round(x - turned.width / 2), round(y - turned.height / 2))
    image.paste(Images.new("RGB", turned.size, colour), corner, turned)


@lru_cache(maxsize=8)
def _font(path: Path | None) -> "FreeTypeFont":
    from PIL import ImageFont  # noqa: PLC0415

    size = FONT_SIZE * SCALE
    if path is not None:
        first = ImageFont.truetype(str(path), size)
        # A collection holds the same characters as several regions write them.
        for index in range(_MOST_FACES if path.suffix.lower() == ".ttc" else 0):
            try:
                face = ImageFont.truetype(str(path), size, index)
            except OSError:
                break
            if (face.getname()[0] or "").endswith(" SC"):
                return face
        return first
    built_in = ImageFont.load_default(size)
    assert isinstance(built_in, ImageFont.FreeTypeFont)
    return built_in
