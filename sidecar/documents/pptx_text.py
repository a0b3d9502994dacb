"""The text of a PPTX file as Markdown: slide by slide, with tables, charts and the speaker's notes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sidecar.documents.graphics import LeftOut, chart_blocks, diagram_blocks
from sidecar.documents.office_math import formula
from sidecar.documents.office_package import OfficePackage, Relationship
from sidecar.documents.refusal import Refused
from sidecar.documents.text_output import Block, LimitReached, TextOutput, table_rows
from sidecar.documents.xml_elements import (
    Element,
    attribute,
    child,
    children,
    chosen,
    name_of,
    number,
    relationship_id,
)

MOST_SLIDES: Final = 5_000
_TITLES: Final = ("title", "ctrTitle")
# The same on every slide: date, footer, number.
_REPEATED: Final = ("dt", "ftr", "sldNum", "hdr")
_BULLETED: Final = ("body", "obj", "")
_MOST_LEVEL: Final = 8


class PptxText:
    """Reads one file."""

    def __init__(self, package: OfficePackage, check: Callable[[], None]) -> None:
        """*check* is called all along and may raise what ends the work."""
        self._package = package
        self._check = check
        self._part = package.main_part("ppt/")
        self.left_out = LeftOut()
        self.has_text = False
        """Whether a slide held more than its number."""

    def write(self, output: TextOutput) -> None:
        """Write the slides in their order."""
        try:
            for index, part in enumerate(self._slides(), 1):
                for block in self._slide(index, part):
                    output.add(block)
        except LimitReached:
            return

    def _slides(self) -> Iterator[str]:
        root = self._package.xml(self._part)
        relationships = self._package.relationships(self._part)
        listed = list(children(child(root, "sldIdLst"), "sldId"))
        if len(listed) > MOST_SLIDES:
            raise Refused("too_large")
        for element in listed:
            relationship = relationships.get(relationship_id(element))
            if relationship is not None and relationship.target in self._package:
                yield relationship.target

    def _slide(self, index: int, part: str) -> Iterator[Block]:
        relationships = self._package.relationships(part)
        tree = child(self._package.xml(part), "cSld", "spTree")
        shapes = list(self._shapes(tree))
        titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
        title = " ".join(" ".join(text.split()) for shape in titles for _, text in _lines(shape))
        blocks = [
            block
            for shape in shapes
            if shape not in titles and _placeholder(shape) not in _REPEATED
            for block in self._shape(shape, relationships)
        ]
        notes = [block for block in self._notes(relationships) if block.text.strip()]
        self.has_text = self.has_text or bool(title or notes or any(b.text.strip() for b in blocks))
        yield Block(f"## Slide {index}" + (f": {title}" if title else ""))
        yield from blocks
        if notes:
            yield Block("Notes:")
            yield from notes

    def _shapes(self, tree: Element | None) -> Iterator[Element]:
        """Yield the shapes of a slide in their order, those of groups among them."""
        for element in tree if tree is not None else ():
            self._check()
            match name_of(element):
                case "grpSp":
                    yield from self._shapes(element)
                case "AlternateContent":
                    yield from self._shapes(chosen(element))
                case "sp" | "graphicFrame" | "pic" | "cxnSp":
                    yield element

    def _shape(self, shape: Element, relationships: Mapping[str, Relationship]) -> Iterator[Block]:
        match name_of(shape):
            case "pic":
                self.left_out.pictures += 1
                described = attribute(child(shape, "nvPicPr", "cNvPr"), "descr")
                if described.strip():
                    yield Block(f"![{' '.join(described.split())}]")
            case "graphicFrame":
                yield from self._frame(shape, relationships)
            case _:
                yield from _text_blocks(shape)

    def _frame(self, frame: Element, relationships: Mapping[str, Relationship]) -> Iterator[Block]:
        for element in child(frame, "graphic", "graphicData") or ():
            match name_of(element):
                case "tbl":
                    yield from _table(element)
                case "chart":
                    yield from chart_blocks(self._package, _target(element, "id", relationships))
                case "relIds":
                    yield from diagram_blocks(self._package, _target(element, "dm", relationships))
                case _:
                    self.left_out.objects += 1

    def _notes(self, relationships: Mapping[str, Relationship]) -> Iterator[Block]:
        for relationship in relationships.values():
            if relationship.kind == "notesSlide":
                tree = child(self._package.xml(relationship.target), "cSld", "spTree")
                for shape in self._shapes(tree):
                    if _placeholder(shape) == "body":
                        yield from (Block(text) for _, text in _lines(shape))


def _target(element: Element, name: str, relationships: Mapping[str, Relationship]) -> str:
    relationship = relationships.get(relationship_id(element, name))
    return relationship.target if relationship and not relationship.external else ""


def _placeholder(shape: Element) -> str | None:
    """Return which placeholder a shape is; "" for one of no special kind, None for none at all."""
    for properties in shape:
        if name_of(properties).startswith("nv"):
            placeholder = child(properties, "nvPr", "ph")
            return attribute(placeholder, "type") if placeholder is not None else None
    return None


def _lines(shape: Element) -> Iterator[tuple[Element, str]]:
    for paragraph in children(child(shape, "txBody"), "p"):
        text = "".join(_words(paragraph)).strip()
        if text:
            yield paragraph, text


def _words(paragraph: Element) -> Iterator[str]:
    for element in paragraph:
        match name_of(element):
            case "r" | "fld":
                yield (text.text or "") if (text := child(element, "t")) is not None else ""
            case "br":
                yield "\n"
            case "m" | "oMath" | "oMathPara":
                yield formula(element)
            case "AlternateContent":
                inner = chosen(element)
                yield from _words(inner) if inner is not None else ()


def _text_blocks(shape: Element) -> Iterator[Block]:
    bulleted = _placeholder(shape) in _BULLETED
    group = object()
    for paragraph, text in _lines(shape):
        properties = child(paragraph, "pPr")
        level = number(attribute(properties, "lvl"), 0, most=_MOST_LEVEL)
        marks = {name_of(element) for element in properties} if properties is not None else set()
        is_item = marks & {"buChar", "buAutoNum", "buBlip"} or (bulleted and "buNone" not in marks)
        if is_item:
            indent = "  " * level
            yield Block(indent + "- " + text.replace("\n", f"\n{indent}  "), group)
        else:
            yield Block(text)


def _table(table: Element) -> Iterator[Block]:
    rows = []
    for row in children(table, "tr"):
        cells = [
            "\n".join(
                "".join(_words(line)).strip() for line in children(child(cell, "txBody"), "p")
            )
            for cell in children(row, "tc")
        ]
        rows.append(cells)
    return iter(table_rows(rows))
