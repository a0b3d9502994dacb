"""What differs between HTML for a browser and HTML for pages, and pieces that both are made of."""

import base64
from typing import Final

from sidecar.export.html.text import escaped
from sidecar.export.pictures.formulas import Formula

# Up to how many columns a table has each size of letters on a page.
_WIDTHS: Final = ((7, "narrow"), (12, "wide"), (20, "wider"))


class Medium:
    """HTML for a browser."""

    most_columns: int | None = None
    formula_colour = "currentColor"

    def picture_address(self, mime_type: str, content: bytes) -> str:
        """Return the address under which a picture is found; may raise ``PictureRefused``."""
        return f"data:{mime_type};base64,{base64.b64encode(content).decode('ascii')}"

    def list_start(self, start: int) -> str:
        """Return the attribute of a list whose first number is *start*."""
        return f' start="{start}"'

    def checkbox(self, label: str, checked: bool) -> str:
        """Return the box before a task; *label* is escaped."""
        state = " checked" if checked else ""
        return f'<input type="checkbox" disabled{state} aria-label="{label}">'


def image_tag(address: str, alternative: str, title: object = None) -> str:
    """Return a picture."""
    named = f' title="{escaped(str(title))}"' if title else ""
    return f'<img src="{escaped(address)}" alt="{escaped(alternative)}"{named}>'


def formula_svg(formula: Formula, source: str, colour: str) -> str:
    """Return a formula that stands on the line of the text; its source is read to those who can't see it."""
    x, y, width, height = formula.view_box
    paths = "".join(
        f'<path d="{outline.path}"{_fill(outline.color)}/>' for outline in formula.outlines
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="formula" role="img" aria-label="{escaped(source)}" '
        f'viewBox="{x:.2f} {y:.2f} {width:.2f} {height:.2f}" fill="{colour}" style="width:{formula.width:.3f}em;'
        f'height:{formula.height:.3f}em;vertical-align:{-formula.depth:.3f}em">{paths}</svg>'
    )


def _fill(color: str | None) -> str:
    return "" if color is None else f' fill="{escaped(color)}"'


def width_class(columns: int) -> str:
    """Return the class of a table that tells how narrow its columns are."""
    return next((name for most, name in _WIDTHS if columns <= most), "widest")
