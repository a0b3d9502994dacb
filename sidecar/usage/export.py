"""The ledger as a file: CSV for spreadsheets, JSON for programs."""

import csv
import io
from collections.abc import Sequence
from typing import Any, Final, Protocol

from sidecar.usage.schemas import ExportFormat, UsageRow

MEDIA_TYPES: Final[dict[ExportFormat, str]] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
}

# A cell that begins with one of these is a formula to a spreadsheet, and names come from outside.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
# Tells Excel that the text is UTF-8.
_MARK: Final = "\ufeff"


class UsageWriter(Protocol):
    """Writes a file of attempts in pieces."""

    def head(self) -> str:
        """Return what stands before the rows."""
        ...

    def rows(self, rows: Sequence[UsageRow]) -> str:
        """Return the next rows; never called with none."""
        ...

    def tail(self) -> str:
        """Return what stands after the rows."""
        ...


class CsvWriter:
    """RFC 4180 with a header line."""

    def head(self) -> str:
        """Return the names of the columns."""
        return _MARK + _lines([list(UsageRow.model_fields)])

    def rows(self, rows: Sequence[UsageRow]) -> str:
        """Return a line a row; what isn't known is an empty cell."""
        return _lines([[_cell(value) for value in row.model_dump().values()] for row in rows])

    def tail(self) -> str:
        """Return nothing."""
        return ""


class JsonWriter:
    """One object with ``items``."""

    def __init__(self) -> None:
        self._separator = ""

    def head(self) -> str:
        """Return the beginning of the object."""
        return '{"items":['

    def rows(self, rows: Sequence[UsageRow]) -> str:
        """Return an object a row."""
        text = self._separator + ",\n".join(row.model_dump_json() for row in rows)
        self._separator = ",\n"
        return text

    def tail(self) -> str:
        """Return the end of the object."""
        return "]}\n"


def writer_of(file_format: ExportFormat) -> UsageWriter:
    """Return a writer for one file."""
    return CsvWriter() if file_format == "csv" else JsonWriter()


def _cell(value: object) -> object:
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS):
        return "'" + value
    return value


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()
