"""Makes an SVG harmless: only shapes, text and their looks remain."""

import re
from typing import TYPE_CHECKING, Final

from sidecar.kernel.errors import ProjectError
from sidecar.plots.mermaid import SVG_UNSAFE

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_ELEMENTS: Final = frozenset(
    [
        "svg",
        "g",
        "defs",
        "title",
        "desc",
        "path",
        "rect",
        "circle",
        "ellipse",
        "line",
        "polyline",
        "polygon",
        "text",
        "tspan",
        "marker",
        "clipPath",
        "mask",
        "linearGradient",
        "radialGradient",
        "stop",
        "symbol",
        "pattern",
    ]
)
_ATTRIBUTES: Final = frozenset(
    [
        "id",
        "class",
        "role",
        "aria-label",
        "aria-hidden",
        "width",
        "height",
        "viewBox",
        "preserveAspectRatio",
        "version",
        "x",
        "y",
        "x1",
        "y1",
        "x2",
        "y2",
        "cx",
        "cy",
        "r",
        "rx",
        "ry",
        "dx",
        "dy",
        "d",
        "points",
        "transform",
        "opacity",
        "fill",
        "fill-opacity",
        "fill-rule",
        "clip-rule",
        "clip-path",
        "mask",
        "stroke",
        "stroke-width",
        "stroke-opacity",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-dasharray",
        "stroke-dashoffset",
        "stroke-miterlimit",
        "color",
        "font-family",
        "font-size",
        "font-style",
        "font-weight",
        "text-anchor",
        "dominant-baseline",
        "alignment-baseline",
        "letter-spacing",
        "offset",
        "stop-color",
        "stop-opacity",
        "gradientUnits",
        "gradientTransform",
        "spreadMethod",
        "patternUnits",
        "patternTransform",
        "markerWidth",
        "markerHeight",
        "markerUnits",
        "orient",
        "refX",
        "refY",
        "marker-start",
        "marker-mid",
        "marker-end",
        "clipPathUnits",
        "maskUnits",
        "style",
        "fx",
        "fy",
    ]
)
_TOKENS: Final = re.compile(r"(?:--[a-z0-9-]+:#[0-9a-fA-F]{3,8};?)*")
_LOCAL: Final = re.compile(r"url\(\s*['\"]?#[\w.-]+['\"]?\s*\)")
_ACTIVE: Final = re.compile(
    r"url\(|javascript:|expression\(|@import|data:|https?:|file:|\\", re.IGNORECASE
)
_MAX_CHARACTERS: Final = 20_000_000


def sanitised_svg(svg: str) -> str:
    """Return *svg* without anything that runs or fetches.

    Raises ``MERMAID_SVG_UNSAFE`` for what is no SVG, for one that declares entities, and for one
    that has active content in a value that can't be left out.
    """
    # Declarations are refused unread, so no entity is ever expanded.
    if len(svg) > _MAX_CHARACTERS or re.search(r"<!(DOCTYPE|ENTITY)", svg, re.IGNORECASE):
        raise ProjectError(SVG_UNSAFE)
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - only when an SVG is there

    try:
        root = ET.fromstring(svg)  # noqa: S314 - without declarations there is no bomb
    except (ET.ParseError, ValueError) as error:
        raise ProjectError(SVG_UNSAFE) from error
    if root.tag != f"{{{_NAMESPACE}}}svg":
        raise ProjectError(SVG_UNSAFE)
    _clean(root)
    ET.register_namespace("", _NAMESPACE)
    return ET.tostring(root, encoding="unicode")


def _clean(root: "Element") -> None:
    waiting = [root]
    while waiting:
        element = waiting.pop()
        # A shape without its points is no shape.
        if any(
            _ACTIVE.search(element.attrib.get(name, "")) for name in ("d", "points", "transform")
        ):
            raise ProjectError(SVG_UNSAFE)
        for name, value in list(element.attrib.items()):
            if not _is_kept(name, value):
                del element.attrib[name]
        for child in list(element):
            # Comments and instructions are dropped while the text is read.
            namespace, _, tag = child.tag.rpartition("}")
            if namespace == f"{{{_NAMESPACE}" and tag in _ELEMENTS:
                waiting.append(child)
            else:
                _remove(element, child)


def _is_kept(name: str, value: str) -> bool:
    if name not in _ATTRIBUTES:
        return False
    if name == "style":
        return _TOKENS.fullmatch(value.replace(" ", "")) is not None
    if name == "aria-label":
        return True
    return not _ACTIVE.search(_LOCAL.sub("", value))


def _remove(parent: "Element", child: "Element") -> None:
    """Take *child* out, but not the text that follows it."""
    index = list(parent).index(child)
    if child.tail:
        if index:
            before = parent[index - 1]
            before.tail = (before.tail or "") + child.tail
        else:
            parent.text = (parent.text or "") + child.tail
    parent.remove(child)
