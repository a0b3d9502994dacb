"""A function plot as it was understood: what is drawn, free of any drawing."""

from dataclasses import dataclass, field
from typing import Final

from sidecar.plots.diagnostics import Diagnostic, Position
from sidecar.plots.expressions import Expression

VERSION: Final = 1
DEFAULT_DOMAIN: Final = (-10.0, 10.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """One expression of a plot. *color* is a CSS colour, None for the theme's."""

    source: str
    expression: Expression
    position: Position
    label: str | None = None
    color: str | None = None


@dataclass(frozen=True, slots=True)
class Axes:
    """The words at the axes, and whether there is a grid."""

    x_label: str | None = None
    y_label: str | None = None
    grid: bool = True


@dataclass(frozen=True, slots=True)
class FunctionPlot:
    """Curves over an interval of x. Without *range* the values decide what is shown of y."""

    curves: tuple[Curve, ...]
    domain: tuple[float, float] = DEFAULT_DOMAIN
    range: tuple[float, float] | None = None
    axes: Axes = field(default_factory=Axes)

    @property
    def nodes(self) -> int:
        """The nodes of all expressions."""
        return sum(curve.expression.nodes for curve in self.curves)


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What a source says. There is no plot exactly when one of the diagnostics is an error."""

    plot: FunctionPlot | None
    diagnostics: tuple[Diagnostic, ...] = ()
    node_count: int = 0
