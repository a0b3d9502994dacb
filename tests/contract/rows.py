"""Reads the contract's rows: one YAML file a domain, one row a thing that a test can show true or false."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FILE_KEYS = {"domain", "complete", "note", "requirements"}
_ROW_KEYS = {"id", "source", "text", "chosen", "note", "waits_for"}


class RowsError(ValueError):
    """A row file breaks the format; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `chosen` marks what no source says and this product decided.

    `waits_for` names the domain folders without which the row can't be shown; while one of them isn't there, the row
    needs no test.
    """

    id: str
    text: str
    source: str
    chosen: bool
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Domain:
    """The rows of one file; where `complete` is set, each of them must have a test."""

    name: str
    rows: tuple[Row, ...]
    complete: bool


@cache
def read_domains(folder: Path) -> tuple[Domain, ...]:
    """Read every `*.yaml` in `folder`, ordered by name. Raises `RowsError` at the first that breaks the format."""
    domains = tuple(_read_domain(file) for file in sorted(folder.glob("*.yaml")))
    seen: set[str] = set()
    for domain in domains:
        for row in domain.rows:
            if row.id in seen:
                raise RowsError(f"{domain.name}.yaml: {row.id} is there twice")
            seen.add(row.id)
    return domains


def _read_domain(file: Path) -> Domain:
    # The C loader reads all rows in a tenth of a second, the Python one needs ten times that.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = yaml.load(file.read_text(encoding="utf-8"), Loader=loader)
    if (
        not isinstance(data, dict)
        or data.get("domain") != file.stem
        or not isinstance(data.get("requirements"), list)
    ):
        raise RowsError(f"{file.name}: needs `domain: {file.stem}` and a list `requirements`")
    _refuse_unknown(file.name, data, _FILE_KEYS)
    complete = data.get("complete", False)
    if not isinstance(complete, bool):
        raise RowsError(f"{file.name}: `complete` is true or false")
    return Domain(file.stem, tuple(_read_row(file, row) for row in data["requirements"]), complete)


def _read_row(file: Path, data: Any) -> Row:
    if not isinstance(data, dict) or not all(
        isinstance(data.get(key), str) for key in ("id", "source", "text")
    ):
        raise RowsError(f"{file.name}: a row needs the texts `id`, `source` and `text`: {data!r}")
    _refuse_unknown(f"{file.name}, {data['id']}", data, _ROW_KEYS)
    if not data["id"].startswith(f"{file.stem}."):
        raise RowsError(f"{file.name}: the id {data['id']} must begin with `{file.stem}.`")
    waits_for = data.get("waits_for", [])
    if not isinstance(waits_for, list) or not all(
        isinstance(name, str) and name.isidentifier() for name in waits_for
    ):
        raise RowsError(f"{file.name}, {data['id']}: `waits_for` is a list of domain folders")
    chosen = bool(data.get("chosen", False))
    return Row(data["id"], data["text"], data["source"], chosen, tuple(waits_for))


def _refuse_unknown(place: str, data: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(data) - known)
    if unknown:
        raise RowsError(f"{place}: unknown keys {', '.join(unknown)}")
