"""The most that a plot may hold."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PlotLimits:
    """The most that one source may hold; None: no limit."""

    expressions: int | None = 16
    nodes: int | None = 8_000


LIMITS: Final = PlotLimits()
