"""Applies a provider's rules to a request body, last of all and to nothing else."""

import copy
from collections.abc import Iterable
from typing import Any

from sidecar.providers.schemas.request_overrides import (
    RequestCapability,
    RequestOverride,
    pointer_parts,
)


def with_overrides(
    body: dict[str, Any],
    rules: Iterable[RequestOverride],
    capability: RequestCapability,
) -> tuple[dict[str, Any], list[int]]:
    """Return a changed copy of *body*, and the positions of the rules that found no place in it.

    A rule that sets makes the objects on its way. A place below a text or a number, or past the end of
    a list, doesn't exist; removing what isn't there changes nothing and counts as done.
    """
    changed, unplaced = copy.deepcopy(body), []
    for index, rule in enumerate(rules):
        if capability in rule.capabilities and not _apply(changed, rule):
            unplaced.append(index)
    return changed, unplaced


def _apply(body: dict[str, Any], rule: RequestOverride) -> bool:
    *way, last = pointer_parts(rule.path)
    place: Any = body
    for step in way:
        if isinstance(place, dict):
            if step not in place:
                if rule.op == "remove":
                    return True
                place[step] = {}
            place = place[step]
        elif isinstance(place, list) and (index := _index(step, len(place))) is not None:
            place = place[index]
        else:
            return rule.op == "remove"
    return _remove(place, last) if rule.op == "remove" else _set(place, last, rule.value)


def _set(place: Any, last: str, value: Any) -> bool:
    value = copy.deepcopy(value)
    if isinstance(place, dict):
        place[last] = value
    elif isinstance(place, list) and last == "-":
        place.append(value)
    elif isinstance(place, list) and (index := _index(last, len(place))) is not None:
        place[index] = value
    else:
        return False
    return True


def _remove(place: Any, last: str) -> bool:
    if isinstance(place, dict):
        place.pop(last, None)
    elif isinstance(place, list) and (index := _index(last, len(place))) is not None:
        del place[index]
    return True


def _index(step: str, length: int) -> int | None:
    if step.isascii() and step.isdigit() and len(step) < 10 and int(step) < length:
        return int(step)
    return None
