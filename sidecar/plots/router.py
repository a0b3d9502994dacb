"""HTTP operations of plots."""

from typing import Final

from fastapi import APIRouter

from sidecar.kernel.catalogue import localise
from sidecar.plots.diagnostics import Diagnostic
from sidecar.plots.schemas import PlotDiagnostic, PlotRequest, PlotResponse, StaticRender
from sidecar.plots.service import DrawnPlot, PlotService

TAG: Final = "plots"

DESCRIPTION: Final = """\
Draws functions of x as SVG. Nothing is stored.

The source is a mapping in YAML or JSON: `expressions` (a list of `{expression, label, color}` or of plain
expressions), and optionally `version` (1), `domain` and `range` (`[min, max]`), and `axes` (`xLabel`, `yLabel`,
`grid`). Anything else is read as one expression a line. Without `domain`, x runs from -10 to 10; without `range`,
y is fitted to the values.

An expression has numbers, `x`, `+ - * / ^`, parentheses, `pi e tau`, and the functions `sin cos tan asin acos atan
sinh cosh tanh exp log ln log10 log2 sqrt cbrt abs floor ceil round sign min max mod`; `log` is the natural
logarithm. The sign of a product may be left out (`2x`, `2sin(x)`), and `y =` may stand in front. A curve has gaps
where it isn't defined.

A mistake in the source is no failed request: `result` is null, and `diagnostics` tell what is wrong and where, with
`FUNCTION_PLOT_PARSE_FAILED`, `FUNCTION_PLOT_EXPRESSION_UNSAFE` or `FUNCTION_PLOT_RENDER_FAILED`. A source holds at
most 16 expressions of 8,000 nodes in all. Two requests are worked on at a time; more wait."""


def build_router(service: PlotService) -> APIRouter:
    """Return the operations under ``/api/plots``."""
    router = APIRouter(prefix="/api/plots", tags=[TAG])

    @router.post("/function", summary="Draw functions", description=DESCRIPTION)
    async def draw_function_plot(request: PlotRequest) -> PlotResponse:
        return _response(await service.draw(request.source, request.theme_id))

    return router


def _response(drawn: DrawnPlot) -> PlotResponse:
    rendering = drawn.rendering
    result = None
    if rendering.result is not None:
        result = StaticRender(
            content=str(rendering.result.content),
            mime_type="image/svg+xml",
            width=rendering.result.width,
            height=rendering.result.height,
            warnings=localise([*drawn.warnings, *rendering.result.warnings]),
        )
    return PlotResponse(
        result=result,
        diagnostics=[_diagnostic(diagnostic) for diagnostic in rendering.diagnostics],
        node_count=rendering.node_count,
    )


def _diagnostic(diagnostic: Diagnostic) -> PlotDiagnostic:
    return PlotDiagnostic(
        severity=diagnostic.severity,
        code=diagnostic.code,
        message=localise(diagnostic.message),
        line=diagnostic.position.line,
        column=diagnostic.position.column,
    )
