"""The colours that the options of an export ask for."""

from sidecar.export.colours.themes import DEFAULT_THEME, THEMES, Colours
from sidecar.export.notices import Notices
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import Localised
from sidecar.plots.service import CHART_THEMES, ChartColours, palette_colours


def colours_of(options: ExportOptions, notices: Notices) -> Colours:
    """Return the colours of a document; an unknown theme is told to *notices*."""
    if options.palette is not None:
        return Colours(**options.palette.model_dump())
    if options.theme_id not in THEMES:
        notices.add(Localised("warning.export_theme_unknown", {"theme": options.theme_id}))
    return THEMES.get(options.theme_id, THEMES[DEFAULT_THEME])


def chart_colours(options: ExportOptions) -> ChartColours:
    """Return the colours of the plots in a document."""
    palette = options.palette
    if palette is None:
        return CHART_THEMES.get(options.theme_id, CHART_THEMES[DEFAULT_THEME])
    return palette_colours(
        palette.page,
        palette.text,
        palette.muted,
        palette.border,
        palette.accent,
        dark=Colours(**palette.model_dump()).is_dark,
    )
