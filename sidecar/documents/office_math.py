"""Formulas of Office files in the notation of LaTeX, as far as that has a word for them."""

from collections.abc import Callable
from typing import Final

from sidecar.documents.xml_elements import Element, attribute, child, children, name_of

_OPERATORS: Final = {
    "∑": r"\sum",
    "∏": r"\prod",
    "∫": r"\int",
    "∬": r"\iint",
    "∭": r"\iiint",
    "∮": r"\oint",
    "⋃": r"\bigcup",
    "⋂": r"\bigcap",
}
_ACCENTS: Final = {
    "\u0302": r"\hat",
    "\u0303": r"\tilde",
    "\u0304": r"\bar",
    "\u0305": r"\overline",
    "\u0307": r"\dot",
    "\u0308": r"\ddot",
    "\u20d7": r"\vec",
}


def formula(element: Element) -> str:
    """Return an ``oMath`` or ``oMathPara`` as ``$…$``; "" if nothing stands in it."""
    source = _inside(element).strip()
    return f"${source}$" if source else ""


def _inside(element: Element | None) -> str:
    if element is None:
        return ""
    return "".join(_written(inner) for inner in element)


def _written(element: Element) -> str:
    name = name_of(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    structure = _STRUCTURES.get(name)
    return structure(element) if structure else _inside(element)


def _group(element: Element, name: str) -> str:
    return "{" + _inside(child(element, name)).strip() + "}"


def _base(element: Element) -> str:
    inside = _inside(child(element, "e")).strip()
    return inside if len(inside) <= 1 or inside.startswith("\\") else "{" + inside + "}"


def _character(element: Element, properties: str, name: str, default: str) -> str:
    return attribute(child(element, properties, name), "val", default)


def _root(element: Element) -> str:
    degree = _inside(child(element, "deg")).strip()
    return r"\sqrt" + (f"[{degree}]" if degree else "") + _group(element, "e")


def _big_operator(element: Element) -> str:
    sign = _character(element, "naryPr", "chr", "∫")
    written = _OPERATORS.get(sign, sign)
    for mark, name in (("_", "sub"), ("^", "sup")):
        limit = _group(element, name)
        written += mark + limit if limit != "{}" else ""
    return f"{written} {_inside(child(element, 'e'))}"


def _delimiters(element: Element) -> str:
    begin = _character(element, "dPr", "begChr", "(")
    end = _character(element, "dPr", "endChr", ")")
    between = _character(element, "dPr", "sepChr", "|")
    return begin + between.join(_inside(part) for part in children(element, "e")) + end


def _matrix(element: Element) -> str:
    rows = [
        " & ".join(_inside(cell).strip() for cell in children(row, "e"))
        for row in children(element, "mr")
    ]
    return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"


def _lines(element: Element) -> str:
    return r" \\ ".join(_inside(line).strip() for line in children(element, "e"))


def _function(element: Element) -> str:
    name = _inside(child(element, "fName")).strip()
    known = "\\" if name in ("sin", "cos", "tan", "log", "ln", "lim", "max", "min", "exp") else ""
    return f"{known}{name} {_inside(child(element, 'e'))}"


def _accent(element: Element) -> str:
    mark = _character(element, "accPr", "chr", "\u0302")
    return _ACCENTS.get(mark, r"\hat") + _group(element, "e")


_STRUCTURES: Final[dict[str, Callable[[Element], str]]] = {
    "f": lambda element: r"\frac" + _group(element, "num") + _group(element, "den"),
    "sSup": lambda element: _base(element) + "^" + _group(element, "sup"),
    "sSub": lambda element: _base(element) + "_" + _group(element, "sub"),
    "sSubSup": lambda element: (
        _base(element) + "_" + _group(element, "sub") + "^" + _group(element, "sup")
    ),
    "sPre": lambda element: (
        "{}_" + _group(element, "sub") + "^" + _group(element, "sup") + _base(element)
    ),
    "rad": _root,
    "nary": _big_operator,
    "d": _delimiters,
    "m": _matrix,
    "eqArr": _lines,
    "func": _function,
    "acc": _accent,
    "bar": lambda element: r"\overline" + _group(element, "e"),
    "limLow": lambda element: _base(element) + "_" + _group(element, "lim"),
    "limUpp": lambda element: _base(element) + "^" + _group(element, "lim"),
}
