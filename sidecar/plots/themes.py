"""The colours of charts: one table of tokens for each built-in theme."""

from dataclasses import dataclass
from typing import Final

DEFAULT_THEME: Final = "light"


@dataclass(frozen=True, slots=True)
class ChartColours:
    """The colours of a chart, each ``#rrggbb``; curves take those of *series* in turn."""

    background: str
    text: str
    axis: str
    grid: str
    series: tuple[str, ...]

    def tokens(self) -> dict[str, str]:
        """Return the colours as CSS custom properties."""
        named = {
            "--chart-background": self.background,
            "--chart-text": self.text,
            "--chart-axis": self.axis,
            "--chart-grid": self.grid,
        }
        curves = {f"--chart-series-{index}": c for index, c in enumerate(self.series, start=1)}
        return named | curves


_ON_LIGHT: Final = ("#d1242f", "#1a7f37", "#8250df", "#9a6700", "#0a7b83", "#bf3989", "#57606a")
_ON_DARK: Final = ("#ff7b72", "#56d364", "#d2a8ff", "#e3b341", "#39c5cf", "#f778ba", "#c9d1d9")

CHART_THEMES: Final[dict[str, ChartColours]] = {
    "light": ChartColours("#ffffff", "#1f2328", "#59636e", "#d1d9e0", ("#0969da", *_ON_LIGHT)),
    "dark": ChartColours("#0d1117", "#e6edf3", "#9198a1", "#2f353d", ("#4493f8", *_ON_DARK)),
    "sepia": ChartColours(
        "#f8f1e3",
        "#3b2f20",
        "#6b5b46",
        "#e0d3b8",
        ("#8a4b08", "#1d5c8a", "#2f6b2f", "#9b2335", "#6b3fa0", "#0f6f6a", "#a33b7d", "#5d554a"),
    ),
    "forest": ChartColours(
        "#f3f7f2",
        "#1c2b1f",
        "#4c6150",
        "#d2e0d1",
        ("#1f6f43", "#8a4b08", "#1d5c8a", "#9b2335", "#6b3fa0", "#7a6a00", "#a33b7d", "#4c6150"),
    ),
    "ocean": ChartColours(
        "#f1f7fb",
        "#12283a",
        "#48627a",
        "#cfe0ec",
        ("#0b669e", "#b3261e", "#1b7f4d", "#6b3fa0", "#8a5a00", "#0f7f7a", "#a33b7d", "#48627a"),
    ),
    "high-contrast": ChartColours(
        "#000000",
        "#ffffff",
        "#ffffff",
        "#4d4d4d",
        ("#00ffff", "#ffff00", "#ff8cff", "#7dff7d", "#ffb347", "#ff9999", "#a6c8ff", "#ffffff"),
    ),
}


def palette_colours(
    page: str, text: str, muted: str, border: str, accent: str, *, dark: bool
) -> ChartColours:
    """Return the chart colours that go with the colours of a document."""
    return ChartColours(page, text, muted, border, (accent, *(_ON_DARK if dark else _ON_LIGHT)))
