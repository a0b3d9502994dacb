"""Pictures for Word: files that it takes, and formulas as pixels."""

import functools
import io
import math
import operator
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sidecar.export.pictures.formulas import Formula
from sidecar.export.pictures.images import MOST_PIXELS, Picture, PictureRefused, pixel_size

if TYPE_CHECKING:
    from PIL.Image import Image

EMU_A_PIXEL: Final = 9525
EMU_A_POINT: Final = 12700
FORMULA_POINTS: Final = 11.0
_PIXELS_AN_EM: Final = 40
_SMOOTHING: Final = 4
_CURVE_STEPS: Final = 8
# How much each control point counts at each step, by how many there are.
_WEIGHTS: Final = {
    points: [
        tuple(
            math.comb(points - 1, place) * share**place * (1 - share) ** (points - 1 - place)
            for place in range(points)
        )
        for share in (step / _CURVE_STEPS for step in range(1, _CURVE_STEPS + 1))
    ]
    for points in (3, 4)
}
_TOKEN: Final = re.compile(r"[MLQCZ]|-?[\d.]+(?:e-?\d+)?")

Point = tuple[float, float]


def word_picture(picture: Picture) -> tuple[bytes, int, int]:
    """Return a file that Word takes, and its width and height in pixels.

    Raises :class:`PictureRefused` for a picture that can't be decoded.
    """
    from PIL import Image  # noqa: PLC0415 - only when there is a picture

    size = pixel_size(picture.content)
    if picture.mime_type != "image/webp":
        return picture.content, *size
    try:
        with Image.open(io.BytesIO(picture.content)) as image:
            output = io.BytesIO()
            image.convert("RGBA" if "A" in image.getbands() else "RGB").save(output, "PNG")
    except (OSError, ValueError) as error:
        raise PictureRefused("unreadable") from error
    return output.getvalue(), *size


@functools.lru_cache(maxsize=64)
def formula_png(formula: Formula) -> bytes:
    """Return a typeset formula as a PNG on nothing, ``_PIXELS_AN_EM`` pixels an em."""
    from PIL import Image, ImageColor  # noqa: PLC0415

    left, top, width, height = formula.view_box
    scale = _PIXELS_AN_EM * formula.width / width
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if size[0] * size[1] * _SMOOTHING**2 > MOST_PIXELS:
        raise PictureRefused("too_large")
    result = Image.new("RGBA", size, (0, 0, 0, 0))
    for outline in formula.outlines:
        mask = Image.new("L", (size[0] * _SMOOTHING, size[1] * _SMOOTHING))
        for ring in _rings(outline.path):
            points = [
                ((x - left) * scale * _SMOOTHING, (y - top) * scale * _SMOOTHING) for x, y in ring
            ]
            _toggle(mask, points)
        ink = ImageColor.getrgb(outline.color or "#1f2328")[:3]
        result.paste(Image.new("RGBA", size, (*ink, 255)), (0, 0), mask.reduce(_SMOOTHING))
    output = io.BytesIO()
    result.save(output, "PNG", compress_level=4)
    return output.getvalue()


def _toggle(mask: "Image", points: list[Point]) -> None:
    """Turn what lies within a ring inside out: a ring within another is a hole."""
    from PIL import Image, ImageChops, ImageDraw  # noqa: PLC0415

    if len(points) < 3:
        return
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, top = max(0, int(min(xs))), max(0, int(min(ys)))
    right, bottom = min(mask.width, int(max(xs)) + 2), min(mask.height, int(max(ys)) + 2)
    if right <= left or bottom <= top:
        return
    box = (left, top, right, bottom)
    ring = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(ring).polygon([(x - left, y - top) for x, y in points], fill=255)
    mask.paste(ImageChops.difference(mask.crop(box), ring), box)


def _rings(path: str) -> Iterator[list[Point]]:
    """Yield the closed lines of SVG path data in absolute M, L, Q, C and Z."""
    tokens = iter(_TOKEN.findall(path))
    ring: list[Point] = []
    for command in tokens:
        if command == "M":
            if ring:
                yield ring
            ring = [_point(tokens)]
        elif command == "L":
            ring.append(_point(tokens))
        elif command in "QC":
            controls = [ring[-1], *(_point(tokens) for _ in range(2 if command == "Q" else 3))]
            ring += _points(controls)
        elif command == "Z":
            yield ring
            ring = []
    if ring:
        yield ring


def _points(controls: list[Point]) -> list[Point]:
    """Return points on the curve of these control points, without its first one."""
    xs, ys = zip(*controls, strict=True)
    return [
        (
            sum(map(operator.mul, weights, xs)),
            sum(map(operator.mul, weights, ys)),
        )
        for weights in _WEIGHTS[len(controls)]
    ]


def _point(tokens: Iterator[str]) -> Point:
    return float(next(tokens)), float(next(tokens))
