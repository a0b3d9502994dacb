"""Wire models of plots."""

from typing import Final, Literal

from pydantic import BaseModel, Field

from sidecar.plots.themes import DEFAULT_THEME

MAX_SOURCE: Final = 20_000


class PlotRequest(BaseModel):
    """The source of a plot, and how it is to look."""

    source: str = Field(
        max_length=MAX_SOURCE,
        description="A mapping in YAML or JSON, or one expression a line.",
        examples=[
            "y = sin(x)",
            "expressions:\n  - {expression: x^2, label: parabola}\ndomain: [-3, 3]",
        ],
    )
    theme_id: str = Field(
        DEFAULT_THEME,
        max_length=100,
        description="A built-in theme: light, dark, sepia, forest, ocean or high-contrast. Another name gives "
        "the light colours and a warning.",
    )


class PlotDiagnostic(BaseModel):
    """Something wrong with a source, and where."""

    severity: Literal["warning", "error"]
    code: str = Field(examples=["FUNCTION_PLOT_PARSE_FAILED"])
    message: str
    line: int = Field(description="Counted from 1 within the source.")
    column: int | None = Field(description="Counted from 1 within the line.")


class StaticRender(BaseModel):
    """A picture."""

    content: str = Field(description="The SVG. It has no script and fetches nothing.")
    mime_type: Literal["image/svg+xml"]
    width: int = Field(description="In pixels.")
    height: int = Field(description="In pixels.")
    warnings: list[str]


class PlotResponse(BaseModel):
    """A plot, or what is wrong with its source."""

    result: StaticRender | None = Field(
        description="Null exactly when one of the diagnostics is an error."
    )
    diagnostics: list[PlotDiagnostic]
    node_count: int = Field(
        description="The numbers, names, operators and calls of all expressions that were read."
    )
