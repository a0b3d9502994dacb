"""Walks through JSON values and makes others of them."""

import copy
from collections.abc import Iterator
from typing import Any

from tests.protocol.operations import Place


def walk(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value inside *value*, containers included, with where it stands."""
    yield place, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, (*place, index))


def leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Every value inside *value* that holds no other."""
    return (
        (place, found)
        for place, found in walk(value)
        if not isinstance(found, dict | list) or not found
    )


def at(value: Any, place: Place) -> Any:
    """The value that stands somewhere inside *value*."""
    for part in place:
        value = value[part]
    return value


def replaced(value: Any, place: Place, new: Any) -> Any:
    """A copy of *value* with another value at one place."""
    if not place:
        return new
    changed = copy.deepcopy(value)
    at(changed, place[:-1])[place[-1]] = new
    return changed


def with_value(value: Any, place: Place, new: Any) -> Any:
    """A copy of *value* with a property that may not be there yet."""
    changed = copy.deepcopy(value)
    inner = changed
    for part in place[:-1]:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner[part]
    inner[place[-1]] = new
    return changed


def place_of(dotted: str) -> Place:
    """The place that a name such as `source.file_path` means."""
    return tuple(dotted.split("."))
