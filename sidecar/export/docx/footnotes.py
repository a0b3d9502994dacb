"""The part of a Word document that holds its footnotes; python-docx makes none."""

from typing import TYPE_CHECKING, Any, Final

from docx.opc.packuri import PackURI
from docx.oxml.parser import parse_xml
from docx.parts.story import StoryPart

from sidecar.export.docx.template import FOOTNOTE_REFERENCE, FOOTNOTE_TEXT
from sidecar.export.docx.xml import Element, Format, paragraph, run, run_of, w

if TYPE_CHECKING:
    from docx.document import Document as WordDocument

_CONTENT: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
_RELATION: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
_EMPTY: Final = (
    '<w:footnotes xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    '<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>'
    '<w:footnote w:type="continuationSeparator" w:id="0"><w:p><w:r><w:continuationSeparator/></w:r></w:p>'
    "</w:footnote></w:footnotes>"
)
_NUMBER: Final = Format(style=FOOTNOTE_REFERENCE)


class Footnotes:
    """The footnotes of one document; the part is made with the first of them."""

    def __init__(self, document: "WordDocument") -> None:
        self._document = document
        self._count = 0
        self.part: Any = None

    def add(self) -> tuple[Element, Element]:
        """Return a reference for the text, and the footnote, which has one paragraph to begin with."""
        if self.part is None:
            package = self._document.part.package
            element: Any = parse_xml(_EMPTY)
            self.part = StoryPart(PackURI("/word/footnotes.xml"), _CONTENT, element, package)
            self._document.part.relate_to(self.part, _RELATION)
        self._count += 1
        note = w("footnote", id=self._count)
        first = paragraph(FOOTNOTE_TEXT)
        first.append(run_of(w("footnoteRef"), _NUMBER))
        first.append(run(" "))
        note.append(first)
        self.part.element.append(note)
        return run_of(w("footnoteReference", id=self._count), _NUMBER), note
