"""Elements of office files by their local names.

Two sets of namespaces are in use, that of ECMA and that of ISO (Strict); the names in them are the same.
"""

import functools
from collections.abc import Iterator
from typing import Any

Element = Any  # An element of lxml, which has no types of its own.


@functools.lru_cache(maxsize=4096)
def _without_namespace(tag: str) -> str:
    return tag.rpartition("}")[2]


def name_of(element: Element) -> str:
    """Return the local name of *element*; "" for what is no element, such as a comment."""
    tag = element.tag
    return _without_namespace(tag) if isinstance(tag, str) else ""


def child(element: Element | None, *path: str) -> Element | None:
    """Return the first child of the first name, of that the first child of the second, and so on."""
    for name in path:
        if element is None:
            return None
        element = next((inner for inner in element if name_of(inner) == name), None)
    return element


def children(element: Element | None, name: str) -> Iterator[Element]:
    """Yield the children of a name."""
    if element is not None:
        yield from (inner for inner in element if name_of(inner) == name)


def descendants(element: Element | None, name: str) -> Iterator[Element]:
    """Yield everything of a name below *element*."""
    if element is not None:
        yield from (inner for inner in element.iter() if name_of(inner) == name)


def attribute(element: Element | None, name: str, default: str = "") -> str:
    """Return the value of an attribute, *default* if it or the element isn't there."""
    if element is None:
        return default
    for key, value in element.attrib.items():
        if _without_namespace(key) == name:
            return str(value)
    return default


def relationship_id(element: Element | None, name: str = "id") -> str:
    """Return the value of an attribute that names a relationship: one with a namespace."""
    if element is None:
        return ""
    for key, value in element.attrib.items():
        if key.startswith("{") and _without_namespace(key) == name:
            return str(value)
    return ""


def number(text: str, default: int, *, most: int) -> int:
    """Return the whole number that *text* is, from 0 to *most*; *default* if it is none."""
    try:
        return min(max(int(text), 0), most)
    except ValueError:
        return default


def is_on(element: Element | None) -> bool:
    """Whether a property that is on or off is there and on."""
    return element is not None and attribute(element, "val", "1") not in ("0", "false", "off")


def chosen(alternatives: Element) -> Element | None:
    """Return the form of an ``AlternateContent`` that is meant for new programs, else the other one."""
    choice = child(alternatives, "Choice")
    return choice if choice is not None else child(alternatives, "Fallback")
