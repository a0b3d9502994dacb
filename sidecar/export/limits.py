"""The most that an export may hold."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportLimits:
    """The budgets of one format; None where it has none."""

    output_bytes: int | None = None
    resources: int | None = None
    picture_bytes: int | None = None
    formula_characters: int | None = None
    formula_depth: int | None = None
    plots: int | None = None
    plot_expressions: int | None = None
    plot_nodes: int | None = None
