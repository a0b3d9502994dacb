"""The findings as lines for a person, or as one JSON document for a program."""

import unicodedata
from collections.abc import Sequence
from typing import Any

from sidecar.doctor.checks_system import platform_name
from sidecar.doctor.findings import NamedFinding
from sidecar.kernel.catalogue import Locale, localise, text
from sidecar.version import VERSION

_GAP = "  "


def is_fine(findings: Sequence[NamedFinding]) -> bool:
    """Whether everything essential works."""
    return not any(found.broken for found in findings)


def as_json(findings: Sequence[NamedFinding], locale: Locale) -> dict[str, Any]:
    """Return the JSON document, its texts in *locale*."""
    return {
        "checks": [
            {
                "name": found.name,
                "status": found.finding.status,
                "summary": localise(found.finding.summary, locale),
                "hint": localise(found.finding.hint, locale),
                "details": dict(found.finding.details),
            }
            for found in findings
        ],
        "ok": is_fine(findings),
        "version": VERSION,
        "platform": platform_name(),
    }


def as_lines(findings: Sequence[NamedFinding], locale: Locale) -> list[str]:
    """Return the lines for a terminal, in three columns: state, part, summary with its hint below."""
    rows = [
        (
            text(f"doctor.status.{found.finding.status}", locale),
            text(f"doctor.title.{found.name}", locale),
            str(localise(found.finding.summary, locale)),
            localise(found.finding.hint, locale),
        )
        for found in findings
    ]
    widths = [max(_width(row[column]) for row in rows) for column in (0, 1)]
    indent = _GAP + " " * widths[0] + _GAP + " " * widths[1] + _GAP
    lines: list[str] = []
    for status, title, summary, hint in rows:
        columns = (_padded(status, widths[0]), _padded(title, widths[1]), summary)
        lines.append(_GAP + _GAP.join(columns))
        if hint:
            lines.append(f"{indent}→ {hint}")
    verdict = "fine" if is_fine(findings) else "broken"
    return [*lines, "", text(f"doctor.verdict.{verdict}", locale)]


def _padded(value: str, width: int) -> str:
    return value + " " * (width - _width(value))


def _width(value: str) -> int:
    """Return how many columns of a terminal *value* takes: two for each Chinese character."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in value)
