"""What is wrong with the source of a plot, and where."""

from dataclasses import dataclass
from typing import Final, Literal

from sidecar.kernel.catalogue import Localised

Severity = Literal["warning", "error"]

PARSE_FAILED: Final = "FUNCTION_PLOT_PARSE_FAILED"
EXPRESSION_UNSAFE: Final = "FUNCTION_PLOT_EXPRESSION_UNSAFE"
RENDER_FAILED: Final = "FUNCTION_PLOT_RENDER_FAILED"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a source; lines and columns count from 1."""

    line: int
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something wrong with a source. An error takes the plot away, a warning doesn't."""

    severity: Severity
    code: str
    message: Localised
    position: Position


class SourceError(Exception):
    """A source can't be drawn; carries the diagnostic."""

    def __init__(
        self, position: Position, key: str, code: str = PARSE_FAILED, **params: object
    ) -> None:
        super().__init__(key)
        self.diagnostic = Diagnostic("error", code, Localised(f"plot.{key}", params), position)
