"""Refuses JSON bodies that parse, but hold what can be neither stored nor sent back.

Python reads more than JSON has: ``NaN``, and escapes that stand for half a character. No database, no
file and no answer in UTF-8 takes these, so they end here and not in the middle of some work.
"""

import json
import math
import re
from typing import Any, Final

from starlette.requests import Request

from sidecar.kernel.errors import ProjectError

# Deeper values can be parsed, but not written again.
MAX_DEPTH: Final = 100

_SUSPICIOUS: Final = re.compile(rb"\\u[dD][89a-fA-F]|NaN|Infinity|\d[eE]\+?\d{3}")
_BRACKETS: Final = re.compile(rb"[\[{]")

Place = tuple[str | int, ...]


async def refuse_unstorable_json(request: Request) -> None:
    """Raise ``VALIDATION_ERROR`` if the body of *request* is such JSON; a dependency of every route."""
    if "json" not in request.headers.get("content-type", ""):
        return
    body = await request.body()
    if not _SUSPICIOUS.search(body) and len(_BRACKETS.findall(body)) <= MAX_DEPTH:
        return
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        # Whoever reads the body in earnest says what is wrong.
        return
    problem = _problem(value, ("body",))
    if problem is not None:
        place, reason = problem
        raise ProjectError(
            "VALIDATION_ERROR", details={"errors": [{"loc": list(place), "message": reason}]}
        )


def _problem(value: Any, place: Place) -> tuple[Place, str] | None:
    if isinstance(value, str):
        broken = any("\ud800" <= character <= "\udfff" for character in value)
        return (place, "The text holds half a character.") if broken else None
    if isinstance(value, float):
        return None if math.isfinite(value) else (place, "The number is not a finite one.")
    if len(place) > MAX_DEPTH:
        return place[:1], f"The value is nested more than {MAX_DEPTH} times."
    if isinstance(value, dict):
        for key, item in value.items():
            found = _problem(key, place) or _problem(item, (*place, key))
            if found is not None:
                return found
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found = _problem(item, (*place, index))
            if found is not None:
                return found
    return None
