"""Reads the SVG of plots."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from sidecar.plots.static_render import (
    StaticRenderer,
    StaticRendering,
    StaticRenderRequest,
    source_hash,
)

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Picture:
    """What a test looks at."""

    root: ET.Element

    @property
    def texts(self) -> list[str]:
        """The words that are shown, cut ones as they are shown."""
        return [element.text or "" for element in self.root.iter(f"{SVG}text") if element.text]

    def paths(self, kind: str) -> list[ET.Element]:
        return [
            element
            for element in self.root.iter(f"{SVG}path")
            if kind in element.attrib["class"].split()
        ]

    def pieces(self, curve: int = 0) -> list[list[tuple[float, float]]]:
        """Return the pieces of a curve, each a list of points in pixels."""
        path = self.paths("curve")[curve].attrib["d"]
        return [
            [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", piece)]
            for piece in path.split("M")[1:]
        ]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the drawing."""
        (frame,) = [e for e in self.root.iter(f"{SVG}rect") if e.attrib.get("class") == "frame"]
        x, y, width, height = (float(frame.attrib[n]) for n in ("x", "y", "width", "height"))
        return x, y, x + width, y + height

    def x_of(self, pixel: float, low: float = -10, high: float = 10) -> float:
        left, _, right, _ = self.frame
        return low + (pixel - left) / (right - left) * (high - low)


def read_svg(content: str | bytes) -> Picture:
    root = ET.fromstring(content)
    assert root.tag == f"{SVG}svg"
    return Picture(root)


def render(source: str, **more: object) -> StaticRendering:
    request = StaticRenderRequest("function_plot", source, source_hash(source), **more)  # type: ignore[arg-type]
    return StaticRenderer().render(request)


def picture(source: str) -> Picture:
    """Draw *source*, which must be right."""
    rendering = render(source)
    assert rendering.result is not None, rendering.diagnostics
    return read_svg(rendering.result.content)
