"""Makes a static picture from its source."""

from sidecar.kernel.catalogue import Localised
from sidecar.plots.diagnostics import RENDER_FAILED, Diagnostic, Position
from sidecar.plots.geometry import HEIGHT, WIDTH, Geometry, make_geometry
from sidecar.plots.mermaid import diagram_problem
from sidecar.plots.png import FontFor, draw_png
from sidecar.plots.source import parse_plot
from sidecar.plots.static_render import StaticRendering, StaticRenderRequest, StaticRenderResult
from sidecar.plots.svg import draw_svg
from sidecar.plots.themes import CHART_THEMES


def draw(request: StaticRenderRequest, font_for: FontFor) -> StaticRendering:
    """Return the picture of a request, or what is wrong with its source. Doesn't raise for a source."""
    if request.kind == "mermaid":
        return _no_diagram(request.source)
    parsed = parse_plot(request.source, request.limits)
    if parsed.plot is None:
        return StaticRendering(None, parsed.diagnostics, parsed.node_count)
    try:
        geometry = make_geometry(parsed.plot, request.width or WIDTH, request.height or HEIGHT)
        names = ", ".join(curve.label or curve.source for curve in parsed.plot.curves)
        result = _picture(request, geometry, names, font_for)
    except (ArithmeticError, ValueError, LookupError, MemoryError):
        failed = Diagnostic("error", RENDER_FAILED, Localised("plot.render_failed"), Position(1))
        return StaticRendering(None, (*parsed.diagnostics, failed), parsed.node_count)
    diagnostics = (*parsed.diagnostics, *geometry.diagnostics)
    return StaticRendering(result, diagnostics, parsed.node_count)


def _no_diagram(source: str) -> StaticRendering:
    code = diagram_problem(source)
    message = Localised(f"warning.{code}")
    return StaticRendering(None, (Diagnostic("warning", code, message, Position(1)),))


def _picture(
    request: StaticRenderRequest, geometry: Geometry, names: str, font_for: FontFor
) -> StaticRenderResult:
    colours = request.colours or CHART_THEMES[request.theme]
    content: str | bytes
    if request.mime_type == "image/png":
        content = draw_png(geometry, colours, font_for)
    else:
        content = draw_svg(geometry, colours, names)
    return StaticRenderResult(request.mime_type, content, geometry.width, geometry.height)
