"""Plots: the pictures of functions, for the preview and for exports."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.catalogue import Localised
from sidecar.plots.diagnostics import Diagnostic
from sidecar.plots.limits import PlotLimits
from sidecar.plots.static_render import (
    StaticRenderer,
    StaticRendering,
    StaticRenderRequest,
    StaticRenderResult,
    source_hash,
)
from sidecar.plots.svg_safety import sanitised_svg
from sidecar.plots.themes import CHART_THEMES, DEFAULT_THEME, ChartColours, palette_colours

# All that other domains use of this one.
__all__ = [
    "CHART_THEMES",
    "DEFAULT_THEME",
    "ChartColours",
    "Diagnostic",
    "DrawnPlot",
    "PlotLimits",
    "PlotService",
    "StaticRenderRequest",
    "StaticRenderResult",
    "StaticRenderer",
    "StaticRendering",
    "palette_colours",
    "sanitised_svg",
    "source_hash",
]

CONCURRENCY: Final = 2


@dataclass(frozen=True, slots=True)
class DrawnPlot:
    """A plot that was asked for; *warnings* are about the request, diagnostics about its source."""

    rendering: StaticRendering
    warnings: Sequence[Localised] = ()


class PlotService:
    """Draws plots outside the event loop, two at a time; the next ones wait."""

    def __init__(self, renderer: StaticRenderer | None = None) -> None:
        self._renderer = renderer or StaticRenderer()
        self._turns = asyncio.Semaphore(CONCURRENCY)

    async def draw(self, source: str, theme_id: str = DEFAULT_THEME) -> DrawnPlot:
        """Draw *source* as SVG in the colours of a built-in theme; an unknown one gives light."""
        colours = CHART_THEMES.get(theme_id)
        warnings = []
        if colours is None:
            warnings.append(Localised("plot.theme_unknown", {"theme": theme_id}))
            colours = CHART_THEMES[DEFAULT_THEME]
        request = StaticRenderRequest("function_plot", source, source_hash(source), colours=colours)
        async with self._turns:
            rendering = await asyncio.to_thread(self._renderer.render, request)
        return DrawnPlot(rendering, warnings)
