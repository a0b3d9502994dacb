"""Writes tables for Word."""

from typing import Final

from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Node
from sidecar.export.docx.inline import InlineWriter
from sidecar.export.docx.template import SURFACE
from sidecar.export.docx.xml import Element, Format, paragraph, w

_ALIGNED: Final = {"center": "center", "right": "right"}
# Of a column, in letters, and the width of one.
_NARROWEST: Final = 3
_WIDEST: Final = 40
_A_LETTER: Final = 115
_CELL_MARGIN: Final = 80


def table_of(
    node: Node, columns: int, indent: int, room: int, inline: InlineWriter, stop: StopSignal
) -> Element:
    """Return a table. *indent* and *room*, the width that there is, are in twentieths of a point."""
    widths = _column_widths(node, columns, room)
    table = w(
        "tbl",
        w(
            "tblPr",
            w("tblStyle", val="TableGrid"),
            w("tblW", w=sum(widths), type="dxa"),
            w("tblInd", w=indent, type="dxa"),
            w(
                "tblCellMar",
                w("left", w=_CELL_MARGIN, type="dxa"),
                w("right", w=_CELL_MARGIN, type="dxa"),
            ),
            w("tblLook", val="0420", firstRow=1, noHBand=0, noVBand=1),
        ),
        w("tblGrid", *(w("gridCol", w=width) for width in widths)),
    )
    row, number = None, -1
    for cell in node.children:
        if cell.attributes["row"] != number:
            stop.check()
            number, row = cell.attributes["row"], w("tr")
            properties = [w("cantSplit")]
            if cell.attributes["header"]:
                properties.append(w("tblHeader"))
            row.append(w("trPr", *properties))
            table.append(row)
        assert row is not None
        row.append(_cell(cell, widths[cell.attributes["column"]], inline))
    return table


def _cell(cell: Node, width: int, inline: InlineWriter) -> Element:
    properties = [w("tcW", w=width, type="dxa")]
    header = bool(cell.attributes["header"])
    if header:
        properties.append(w("shd", val="clear", color="auto", fill=SURFACE))
    layout = [w("spacing", before=30, after=30, line=260, lineRule="auto")]
    if aligned := _ALIGNED.get(cell.attributes["align"] or ""):
        layout.append(w("jc", val=aligned))
    words = paragraph(None, *layout)
    words.extend(inline.runs(cell, Format(bold=header)))
    return w("tc", w("tcPr", *properties), words)


def _column_widths(table: Node, columns: int, room: int) -> list[int]:
    """Return widths that share *room* by how much the cells of each column hold."""
    most = [_NARROWEST] * columns
    for cell in table.children:
        words = cell.plain_text()
        wide = len(words) + sum(ord(character) >= 0x2E80 for character in words)
        column = cell.attributes["column"]
        most[column] = min(_WIDEST, max(most[column], wide + 2))
    needed = [wide * _A_LETTER + 2 * _CELL_MARGIN for wide in most]
    # Columns that need less than an equal share get what they need, the others share the rest.
    widths = [0] * columns
    left, waiting = room, sorted(range(columns), key=needed.__getitem__)
    for position, column in enumerate(waiting):
        share = left // (columns - position)
        widths[column] = max(1, min(needed[column], share))
        left -= widths[column]
    return widths
