"""An empty Word document with the styles, numbering, page and frame that documents are written into."""

from typing import TYPE_CHECKING, Any, Final

import docx
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml.ns import qn
from docx.shared import Mm, Pt, RGBColor

from sidecar.export.characters import allowed
from sidecar.export.docx.xml import Element, field, paragraph, run, w
from sidecar.export.schemas import PageSize

if TYPE_CHECKING:
    from docx.document import Document as WordDocument

LATIN: Final = "Calibri"
CHINESE: Final = "Microsoft YaHei"
MONOSPACE: Final = "Consolas"
CODE_BLOCK: Final = "CodeBlock"
CODE: Final = "InlineCode"
HYPERLINK: Final = "Hyperlink"
FOOTNOTE_TEXT: Final = "FootnoteText"
FOOTNOTE_REFERENCE: Final = "FootnoteReference"
CALLOUT: Final = "Callout"
CALLOUT_TITLE: Final = "CalloutTitle"
LEVELS: Final = 9
INDENT: Final = 420  # twentieths of a point a level

_PAGES: Final = {"A4": (Mm(210), Mm(297)), "Letter": (Mm(215.9), Mm(279.4))}
_MARGIN: Final = Mm(22)
_TEXT: Final = RGBColor(0x1F, 0x23, 0x28)
_MUTED: Final = RGBColor(0x59, 0x63, 0x6E)
_LINK: Final = RGBColor(0x09, 0x69, 0xDA)
SURFACE: Final = "F6F8FA"
BORDER: Final = "D1D9E0"
_HEADINGS: Final = (20, 16, 13.5, 12, 11, 11)
_BULLETS: Final = "•◦▪"
_TABLE_BORDER: Final = "B4BCC4"
_TABLE_SIDES: Final = ("top", "left", "bottom", "right", "insideH", "insideV")


class Template:
    """A new document. ``document`` is python-docx's; ``width`` and ``height`` are the text's room in EMU."""

    def __init__(self, title: str | None, page_size: PageSize) -> None:
        self.document: WordDocument = docx.Document()
        section = self.document.sections[0]
        section.page_width, section.page_height = _PAGES[page_size]
        section.left_margin = section.right_margin = _MARGIN
        section.top_margin = section.bottom_margin = Mm(24)
        self.width = int(section.page_width - 2 * _MARGIN)
        self.height = int(section.page_height - 2 * Mm(24))
        _set_fonts(self.document)
        _set_styles(self.document)
        _set_settings(self.document)
        self._numbering: Element = self.document.part.numbering_part.element
        self._bullets, self._decimal = self._add_levels("bullet"), self._add_levels("decimal")
        self._shared_bullets = self._add_number(self._bullets)
        self._frame(section, title or "")
        properties = self.document.core_properties
        properties.title = allowed(title or "")[:255]
        properties.author = properties.comments = properties.keywords = ""

    def add_code_style(self, name: str, colour: str | None, *, bold: bool, italic: bool) -> None:
        """Add the character style of a kind of token; *colour* is ``#rrggbb``."""
        style = _add(self.document, name, character=True)
        if colour:
            style.font.color.rgb = RGBColor.from_string(colour[1:].upper())
        # Asked for or not, it isn't taken from elsewhere.
        style.font.bold, style.font.italic = bold or None, italic or None

    def numbering(self, *, ordered: bool, start: int, level: int) -> int:
        """Return the number of a list's numbering; an ordered list has one of its own."""
        if not ordered:
            return self._shared_bullets
        number = self._add_number(self._decimal)
        override = w("lvlOverride", w("startOverride", val=start), ilvl=level)
        self._numbering.num_having_numId(number).append(override)
        return number

    def _add_levels(self, kind: str) -> int:
        taken = [
            int(e.get(qn("w:abstractNumId"))) for e in self._numbering.findall(qn("w:abstractNum"))
        ]
        identity = max(taken, default=0) + 1
        abstract = w("abstractNum", w("multiLevelType", val="multilevel"), abstractNumId=identity)
        for level in range(LEVELS):
            words = _BULLETS[level % 3] if kind == "bullet" else f"%{level + 1}."
            indent = w("ind", left=INDENT * (level + 1), hanging=INDENT)
            abstract.append(
                w(
                    "lvl",
                    w("start", val=1),
                    w("numFmt", val=kind),
                    w("lvlText", val=words),
                    w("lvlJc", val="left"),
                    w("pPr", indent),
                    ilvl=level,
                )
            )
        # Abstract numberings stand before the numberings that use them.
        first = self._numbering.find(qn("w:num"))
        if first is not None:
            first.addprevious(abstract)
        else:
            self._numbering.append(abstract)
        return identity

    def _add_number(self, abstract: int) -> int:
        number: int = self._numbering.add_num(abstract).numId
        return number

    def _frame(self, section: Any, title: str) -> None:
        head = section.header.paragraphs[0]
        head._p.append(run(title[:100]))  # noqa: SLF001 - elements are added that the library has no words for
        foot = section.footer.paragraphs[0]
        foot.alignment = 1
        for part in (*field("PAGE"), run(" / "), *field("NUMPAGES")):
            foot._p.append(part)  # noqa: SLF001


def _set_fonts(document: "WordDocument") -> None:
    styles = document.styles.element
    for fonts in styles.iter(qn("w:rFonts")):
        for name in list(fonts.attrib):
            del fonts.attrib[name]
        for script, font in (
            ("ascii", LATIN),
            ("hAnsi", LATIN),
            ("eastAsia", CHINESE),
            ("cs", LATIN),
        ):
            fonts.set(qn(f"w:{script}"), font)
    for language in styles.iter(qn("w:lang")):
        language.set(qn("w:eastAsia"), "zh-CN")


def _set_styles(document: "WordDocument") -> None:
    styles = document.styles
    normal = styles["Normal"]
    normal.font.size, normal.font.color.rgb = Pt(10.5), _TEXT
    normal.paragraph_format.space_after = Pt(6)
    normal.paragraph_format.line_spacing = 1.25
    for level, size in enumerate(_HEADINGS, start=1):
        heading = styles[f"Heading {level}"]
        heading.font.size, heading.font.color.rgb = Pt(size), _TEXT
        heading.font.bold, heading.font.italic = True, False
        heading.paragraph_format.space_before, heading.paragraph_format.space_after = Pt(14), Pt(5)
    title = styles["Title"]
    title.font.size, title.font.color.rgb, title.font.bold = Pt(24), _TEXT, True
    quote = styles["Quote"]
    quote.font.italic, quote.font.color.rgb = False, _MUTED
    _border(quote.element, 18, BORDER)
    _add_callouts(document)
    for line in styles["Table Grid"].element.iter(*(qn(f"w:{side}") for side in _TABLE_SIDES)):
        if line.get(qn("w:val")) == "single":
            line.set(qn("w:color"), _TABLE_BORDER)
    for name in ("Header", "Footer"):
        styles[name].font.size, styles[name].font.color.rgb = Pt(8.5), _MUTED
    _add_code(document)
    link = _add(document, HYPERLINK, character=True)
    link.font.color.rgb, link.font.underline = _LINK, True
    note = _add(document, FOOTNOTE_TEXT, character=False)
    note.font.size = Pt(9)
    note.paragraph_format.space_after = Pt(2)
    _add(document, FOOTNOTE_REFERENCE, character=True).font.superscript = True


def _add(document: "WordDocument", name: str, *, character: bool) -> Any:
    kind = WD_STYLE_TYPE.CHARACTER if character else WD_STYLE_TYPE.PARAGRAPH
    style: Any = document.styles.add_style(name, kind)
    if not character:
        style.base_style = document.styles["Normal"]
    return style


def _add_code(document: "WordDocument") -> None:
    for name, character in ((CODE_BLOCK, False), (CODE, True)):
        style = _add(document, name, character=character)
        style.font.size = Pt(9 if not character else 9.5)
        properties = style.element.get_or_add_rPr()
        for fonts in properties.findall(qn("w:rFonts")):
            properties.remove(fonts)
        fonts = w("rFonts", ascii=MONOSPACE, hAnsi=MONOSPACE, eastAsia=CHINESE, cs=MONOSPACE)
        properties.insert(0, fonts)
        shade = w("shd", val="clear", color="auto", fill=SURFACE)
        if character:
            properties.append(shade)
            continue
        style.paragraph_format.line_spacing = 1.1
        block = style.element.get_or_add_pPr()
        sides = (
            w(side, val="single", sz=4, space=4, color=BORDER)
            for side in ("top", "left", "bottom", "right")
        )
        spacing = block.find(qn("w:spacing"))
        for part in (w("pBdr", *sides), shade):
            if spacing is not None:
                spacing.addprevious(part)
            else:
                block.append(part)


def _add_callouts(document: "WordDocument") -> None:
    accent = str(_LINK)
    for name, based_on in ((CALLOUT, "Normal"), (CALLOUT_TITLE, CALLOUT)):
        style = _add(document, name, character=False)
        style.base_style = document.styles[based_on]
        if name == CALLOUT_TITLE:
            style.font.color.rgb, style.paragraph_format.keep_with_next = _LINK, True
            continue
        _border(style.element, 24, accent)
        border = style.element.pPr.find(qn("w:pBdr"))
        border.addnext(w("shd", val="clear", color="auto", fill=SURFACE))


def _border(style: Element, size: int, colour: str) -> None:
    """Add a line at the left."""
    border = w("pBdr", w("left", val="single", sz=size, space=8, color=colour))
    style.get_or_add_pPr().insert(0, border)


def _set_settings(document: "WordDocument") -> None:
    """Mend what the empty document of the library, which is old and Japanese, says of itself."""
    part = document.part
    # A copy of the styles for Word 2010 alone. It lacks ours, and Word may offer a repair.
    for key, relation in list(part.rels.items()):
        if relation.reltype.endswith("/stylesWithEffects"):
            del part.rels[key]
    settings = document.settings.element
    for setting in settings.iter(qn("w:compatSetting")):
        if setting.get(qn("w:name")) == "compatibilityMode":
            # That of Word 2013 and all since; others are shown in a "compatibility mode".
            setting.set(qn("w:val"), "15")
    for language in settings.iter(qn("w:themeFontLang")):
        language.set(qn("w:eastAsia"), "zh-CN")
    for zoom in settings.iter(qn("w:zoom")):
        zoom.set(qn("w:percent"), "100")


def metadata_paragraph(words: str) -> Element:
    """Return a line of what is known of a note."""
    element = paragraph("Subtitle")
    element.append(run(words))
    return element
