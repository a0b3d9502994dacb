"""What stands in one paragraph of a DOCX file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sidecar.documents.graphics import LeftOut, chart_blocks, diagram_blocks
from sidecar.documents.office_math import formula
from sidecar.documents.office_package import OfficePackage, Relationship
from sidecar.documents.text_output import Block
from sidecar.documents.xml_elements import (
    Element,
    attribute,
    child,
    chosen,
    is_on,
    name_of,
    relationship_id,
)

_SKIPPED: Final = frozenset(
    {"pPr", "rPr", "sdtPr", "sdtEndPr", "del", "moveFrom", "delText", "instrText", "delInstrText"}
)
_LINKED: Final = ("http://", "https://", "mailto:")
_PRIVATE_USE: Final = range(0xE000, 0xF900)

NoteKind = Literal["footnote", "endnote"]


@dataclass(slots=True)
class Inline:
    """The words of a paragraph, the text boxes that hang on it, and its charts and diagrams."""

    parts: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    graphics: list[Block] = field(default_factory=list)
    # For each field that is open: whether its code is being read, which isn't shown.
    in_code: list[bool] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words, with line breaks where the document has them."""
        return "".join(self.parts)


class InlineReader:
    """Reads paragraphs, and notes which footnotes they refer to."""

    def __init__(
        self,
        package: OfficePackage,
        relationships: Mapping[str, Relationship],
        left_out: LeftOut,
    ) -> None:
        self._package = package
        self._relationships = relationships
        self._left_out = left_out
        self.notes: list[tuple[NoteKind, str, str]] = []
        """Kind, id in the file, and mark in the text, in the order of the references."""
        self._handlers: dict[str, Callable[[Element, Inline], None]] = {
            "r": self._run,
            "t": lambda element, to: self._say(element.text or "", to),
            "tab": lambda _, to: self._say("\t", to),
            "ptab": lambda _, to: self._say("\t", to),
            "br": self._break,
            "cr": lambda _, to: self._say("\n", to),
            "noBreakHyphen": lambda _, to: self._say("-", to),
            "sym": self._symbol,
            "fldChar": self._field,
            "hyperlink": self._link,
            "ruby": self._ruby,
            "footnoteReference": lambda element, to: self._note("footnote", element, to),
            "endnoteReference": lambda element, to: self._note("endnote", element, to),
            "oMath": self._formula,
            "drawing": self._drawing,
            "pict": self._drawing,
            "object": self._drawing,
            "AlternateContent": self._alternatives,
        }

    def read(self, paragraph: Element) -> Inline:
        """Return what stands in *paragraph*."""
        found = Inline()
        self._children(paragraph, found)
        return found

    def _children(self, element: Element, to: Inline) -> None:
        for inner in element:
            name = name_of(inner)
            if name in _SKIPPED:
                continue
            handler = self._handlers.get(name)
            if handler is not None:
                handler(inner, to)
            else:
                self._children(inner, to)

    @staticmethod
    def _say(text: str, to: Inline) -> None:
        if not any(to.in_code):
            to.parts.append(text)

    def _run(self, run: Element, to: Inline) -> None:
        if not is_on(child(run, "rPr", "vanish")):
            self._children(run, to)

    def _break(self, element: Element, to: Inline) -> None:
        if attribute(element, "type", "textWrapping") == "textWrapping":
            self._say("\n", to)

    def _symbol(self, element: Element, to: Inline) -> None:
        try:
            code = int(attribute(element, "char"), 16)
        except ValueError:
            return
        # Symbol fonts put their signs into this area; which ones only the font knows.
        if code not in _PRIVATE_USE and 0x20 <= code < 0xD800:
            self._say(chr(code), to)

    @staticmethod
    def _field(element: Element, to: Inline) -> None:
        kind = attribute(element, "fldCharType")
        if kind == "begin":
            to.in_code.append(True)
        elif to.in_code and kind == "separate":
            to.in_code[-1] = False
        elif to.in_code and kind == "end":
            to.in_code.pop()

    def _link(self, element: Element, to: Inline) -> None:
        before = len(to.parts)
        self._children(element, to)
        words = "".join(to.parts[before:])
        relationship = self._relationships.get(relationship_id(element))
        if relationship is None or not relationship.external or not words.strip():
            return
        target = relationship.target
        if target.lower().startswith(_LINKED) and words.strip() != target:
            to.parts[before:] = [
                f"[{words}](<{target}>)" if " " in target else f"[{words}]({target})"
            ]

    def _ruby(self, element: Element, to: Inline) -> None:
        base, reading = child(element, "rubyBase"), child(element, "rt")
        if base is not None:
            self._children(base, to)
        if reading is not None:
            before = len(to.parts)
            self._children(reading, to)
            to.parts[before:] = ["(", *to.parts[before:], ")"]

    def _note(self, kind: NoteKind, element: Element, to: Inline) -> None:
        note_id = attribute(element, "id")
        for known_kind, known_id, mark in self.notes:
            if (known_kind, known_id) == (kind, note_id):
                self._say(f"[^{mark}]", to)
                return
        mark = str(len(self.notes) + 1)
        self.notes.append((kind, note_id, mark))
        self._say(f"[^{mark}]", to)

    def _formula(self, element: Element, to: Inline) -> None:
        self._say(formula(element), to)

    def _alternatives(self, element: Element, to: Inline) -> None:
        inner = chosen(element)
        if inner is not None:
            self._children(inner, to)

    def _drawing(self, drawing: Element, to: Inline) -> None:
        """Note what a drawing holds: text boxes, pictures with their descriptions, charts, diagrams."""
        description = ""
        for element in _parts_of(drawing):
            match name_of(element):
                case "txbxContent":
                    to.boxes.append(element)
                case "docPr":
                    description = attribute(element, "descr").strip()
                case "blip" | "imagedata":
                    self._left_out.pictures += 1
                    if description:
                        self._say(f"![{' '.join(description.split())}]", to)
                case "OLEObject" | "control":
                    self._left_out.objects += 1
                case "chart":
                    to.graphics.extend(chart_blocks(self._package, self._target(element, "id")))
                case "relIds":
                    to.graphics.extend(diagram_blocks(self._package, self._target(element, "dm")))

    def _target(self, element: Element, name: str) -> str:
        relationship = self._relationships.get(relationship_id(element, name))
        return relationship.target if relationship and not relationship.external else ""


def _parts_of(element: Element) -> list[Element]:
    """Return everything below *element* in order, but nothing that is inside a text box."""
    found: list[Element] = []
    waiting = [element]
    while waiting:
        current = waiting.pop()
        if name_of(current) == "AlternateContent":
            current = chosen(current)
            if current is None:
                continue
        found.append(current)
        if name_of(current) != "txbxContent":
            waiting.extend(reversed(list(current)))
    return found
