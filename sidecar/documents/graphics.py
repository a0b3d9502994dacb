"""What stands in charts and diagrams, and what can't be put into words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.documents.office_package import OfficePackage
from sidecar.documents.text_output import Block, table_rows
from sidecar.documents.xml_elements import (
    Element,
    attribute,
    child,
    children,
    descendants,
    name_of,
    number,
)

_MOST_POINTS: Final = 2_000


@dataclass(slots=True)
class LeftOut:
    """How much of a document no text can stand for."""

    pictures: int = 0
    objects: int = 0


def paragraph_text(paragraph: Element) -> str:
    """Return the words of a paragraph of DrawingML."""
    parts: list[str] = []
    for element in paragraph.iter():
        name = name_of(element)
        if name == "t":
            parts.append(element.text or "")
        elif name == "br":
            parts.append("\n")
        elif name == "tab":
            parts.append("\t")
    return "".join(parts).strip()


def diagram_blocks(package: OfficePackage, part: str) -> Iterator[Block]:
    """Yield the texts of a SmartArt diagram, whose data is in *part*."""
    group = object()
    for point in descendants(package.xml(part), "pt"):
        lines = [paragraph_text(line) for line in descendants(child(point, "t"), "p")]
        text = " ".join(line for line in lines if line)
        if text and attribute(point, "type", "node") in ("node", "asst"):
            yield Block(f"- {text}", group)


def chart_blocks(package: OfficePackage, part: str) -> Iterator[Block]:
    """Yield a chart's title and its values as a table: a row for each category, a column for each series."""
    root = package.xml(part)
    chart = child(root, "chart")
    title = [paragraph_text(line) for line in descendants(child(chart, "title"), "p")]
    yield Block(" ".join(line for line in title if line))
    series = list(descendants(child(chart, "plotArea"), "ser"))
    if not series:
        return
    names = [" ".join(_points(child(one, "tx")).values()) for one in series]
    categories: dict[int, str] = {}
    for one in series:
        categories = categories or _points(_first(one, "cat", "xVal"))
    columns = [_points(_first(one, "val", "yVal")) for one in series]
    indexes = sorted({*categories, *(index for column in columns for index in column)})
    rows = [["", *names]]
    rows += [
        [categories.get(index, str(index + 1)), *(column.get(index, "") for column in columns)]
        for index in indexes[:_MOST_POINTS]
    ]
    yield from table_rows(rows)


def _first(element: Element, *names: str) -> Element | None:
    return next((found for name in names if (found := child(element, name)) is not None), None)


def _points(element: Element | None) -> dict[int, str]:
    """Return the values that are kept with a reference to a sheet, by their place."""
    return {
        number(attribute(point, "idx"), 0, most=1_000_000): (value.text or "").strip()
        for point in descendants(element, "pt")
        for value in children(point, "v")
    }
