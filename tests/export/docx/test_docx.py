"""The document tree becomes a Word file."""

import asyncio
import io
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from sidecar.export.document import Metadata
from sidecar.export.schemas import ExportOptions, PageSize, Palette
from tests.export.conftest import ExportMarkdown
from tests.export.pictures.samples import JPEG, WEBP, png
from tests.export.reading_pages import WORD, Word, read_docx, read_pdf
from tests.export.test_document import EVERYTHING

RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


async def docx_of(export: ExportMarkdown, markdown: str, **more: object) -> Word:
    return read_docx((await export(markdown, format_="docx", **more)).file.path)


def styles_of(word: Word) -> list[tuple[str, str]]:
    """Return style and text of each paragraph that has any."""
    return [
        (str(p.style.name) if p.style else "", p.text) for p in word.document.paragraphs if p.text
    ]


@pytest.mark.proves(
    "export.render.math-mathtext", "export.render.plot-docx", "export.render.static-docx"
)
async def test_every_part_of_the_document_is_there(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, EVERYTHING, title="The title")
    styles = styles_of(word)
    for expected in (
        ("Title", "The title"),
        ("Heading 1", "Heading one"),
        ("List Paragraph", "☐\topen"),
        ("List Paragraph", "☑\tdone"),
        ("List Paragraph", "deeper"),
        ("List Paragraph", "three"),
        ("Quote", "quoted"),
        ("CodeBlock", 'print("code")'),
        ("CodeBlock", "graph TD; A-->B"),
    ):
        assert expected in styles, expected
    text = word.text
    for part in ("emphasis", "strong", "struck", "code", "link", "alt words", "left", "centre"):
        assert part in text, part
    # Formulas and plot are pictures; no formula object is there.
    assert word.pictures == ["x^2", "\\int_0^1 x\\,dx", "sin(x)"]
    assert all(
        media.startswith(b"\x89PNG") for media in word.media if media[:4] != b"\xff\xd8\xff\xe0"
    )
    assert not list(
        word.body.iter("{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath")
    )
    assert not list(word.body.iter(f"{WORD}object"))


async def test_letters_look_as_they_should(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, "**bold** *italic* ~~struck~~ `code` 中文\n换行 a\nb")
    runs = {run.text: run for run in word.document.paragraphs[0].runs}
    assert runs["bold"].bold
    assert runs["italic"].italic
    assert runs["struck"].font.strike
    assert runs["code"].style.name == "InlineCode"
    # A line break of the source is a blank, but not between Chinese characters.
    assert " 中文换行 a b" in runs
    styles = word.part("word/styles.xml")
    for fonts in styles.iter(f"{WORD}rFonts"):
        assert fonts.attrib[f"{WORD}eastAsia"] == "Microsoft YaHei"
    assert all(e.attrib[f"{WORD}eastAsia"] == "zh-CN" for e in styles.iter(f"{WORD}lang"))


async def test_lists_have_numbers_of_word(export_markdown: ExportMarkdown) -> None:
    markdown = (
        "3. three\n4. four\n   - deep\n     1. deeper\n\ntext\n\n1. one\n\n   more of one\n\n2. two"
    )
    word = await docx_of(export_markdown, markdown)
    found = []
    for paragraph in word.body.iter(f"{WORD}p"):
        text = "".join(e.text or "" for e in paragraph.iter(f"{WORD}t"))
        number = paragraph.find(f"{WORD}pPr/{WORD}numPr/{WORD}numId")
        level = paragraph.find(f"{WORD}pPr/{WORD}numPr/{WORD}ilvl")
        if number is not None and level is not None:
            found.append((text, level.attrib[f"{WORD}val"], number.attrib[f"{WORD}val"]))
    texts = {text: (level, number) for text, level, number in found}
    assert [texts[t][0] for t in ("three", "four", "deep", "deeper", "one")] == list("00120")
    assert texts["three"][1] == texts["four"][1] != texts["one"][1]
    assert texts["one"][1] == texts["two"][1]
    assert "more of one" not in texts
    numbering = word.part("word/numbering.xml")
    starts = {
        number.attrib[f"{WORD}numId"]: start.attrib[f"{WORD}val"]
        for number in numbering.iter(f"{WORD}num")
        for start in number.iter(f"{WORD}startOverride")
    }
    assert starts[texts["three"][1]] == "3"
    assert starts[texts["one"][1]] == "1"


async def test_tables_are_tables(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(
        export_markdown, "| a | b | c |\n|---|:-:|--:|\n| 1 | **2** | $x$ |\n| 4 | 5 | 6 |"
    )
    (table,) = word.document.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["a", "b", "c"],
        ["1", "2", ""],
        ["4", "5", "6"],
    ]
    assert [cell.paragraphs[0].alignment for cell in table.rows[1].cells] == [None, 1, 2]
    assert table.rows[0].cells[0].paragraphs[0].runs[0].bold
    assert len(list(word.body.iter(f"{WORD}tblHeader"))) == 1
    assert word.pictures == ["x"]


async def test_links_and_bookmarks(export_markdown: ExportMarkdown) -> None:
    markdown = "# 第一 章\n\n[out](https://example.org/?a=1&b=2) [in](#第一-章) [no](#nowhere) [bad](javascript:x)"
    result = await export_markdown(markdown, format_="docx")
    word = read_docx(result.file.path)
    relations = word.part("word/_rels/document.xml.rels")
    targets = {e.attrib["Id"]: e.attrib["Target"] for e in relations}
    outside, inside = word.body.iter(f"{WORD}hyperlink")
    assert targets[outside.attrib[RELATION]] == "https://example.org/?a=1&b=2"
    (bookmark,) = word.body.iter(f"{WORD}bookmarkStart")
    assert inside.attrib[f"{WORD}anchor"] == bookmark.attrib[f"{WORD}name"]
    assert [w.key for w in result.warnings] == ["warning.export_link_removed"]
    assert "javascript" not in str(targets)


async def test_footnotes_are_footnotes(export_markdown: ExportMarkdown) -> None:
    markdown = (
        "one[^a] two[^b] again[^a]\n\n[^a]: First **note** with [link](https://example.org) and $x$.\n"
        "[^b]: Second.\n\n    - with a list[^c]\n[^c]: Third."
    )
    word = await docx_of(export_markdown, markdown)
    notes = word.part("word/footnotes.xml")
    texts = {
        note.attrib[f"{WORD}id"]: "".join(e.text or "" for e in note.iter(f"{WORD}t")).strip()
        for note in notes
    }
    references = [e.attrib[f"{WORD}id"] for e in word.body.iter(f"{WORD}footnoteReference")]
    assert references == ["1", "2", "3"]
    assert texts["1"] == texts["3"] == "First note with link and ."
    assert texts["2"].startswith("Second.")
    assert "with a list" in texts["2"]
    assert "First" not in word.text
    relations = word.part("word/_rels/footnotes.xml.rels")
    assert "https://example.org" in [e.attrib["Target"] for e in relations]


@pytest.mark.proves("export.options.page-size")
async def test_page_frame_and_properties(export_markdown: ExportMarkdown) -> None:
    sizes: dict[PageSize, tuple[int, int]] = {"A4": (595, 842), "Letter": (612, 792)}
    for size, points in sizes.items():
        options = ExportOptions(page_size=size)
        document = (await docx_of(export_markdown, "x", title="标题", options=options)).document
        section = document.sections[0]
        assert section.page_width is not None
        assert section.page_height is not None
        assert (round(section.page_width.pt), round(section.page_height.pt)) == points
        assert section.header.paragraphs[0].text == "标题"
        assert document.core_properties.title == "标题"
        assert document.core_properties.author == ""


@pytest.mark.proves("export.options.include-title", "export.options.include-metadata")
async def test_title_and_metadata(export_markdown: ExportMarkdown) -> None:
    metadata = Metadata(("physics", "高数"), "2026-08-31T10:30:00.000Z", "2026-09-01T08:00:00.000Z")
    for wanted in (True, False):
        options = ExportOptions(include_title=wanted, include_metadata=wanted)
        word = await docx_of(
            export_markdown, "text", title="标题", metadata=metadata, options=options
        )
        for part in ("标题", "physics, 高数", metadata.created_at, metadata.updated_at):
            assert (part in word.text) is wanted


@pytest.mark.proves("export.theme.docx-light")
async def test_word_files_stay_light(export_markdown: ExportMarkdown) -> None:
    markdown = "# A\n\n`code` [l](https://example.org)\n\n```plot\nx\n```\n\n$x$"
    light = await docx_of(export_markdown, markdown)
    dark = Palette(
        **dict.fromkeys(("page", "surface", "text", "muted", "code", "border", "accent"), "#000000")
    )
    for options in (ExportOptions(theme_id="dark"), ExportOptions(palette=dark)):
        other = await docx_of(export_markdown, markdown, options=options)
        assert other.media == light.media
        assert [e.attrib for e in other.body.iter()] == [e.attrib for e in light.body.iter()]
    plot = Image.open(io.BytesIO(light.media[0])).convert("RGB")
    assert plot.getpixel((2, 2)) == (255, 255, 255)


async def test_pictures_of_every_kind(export_markdown: ExportMarkdown, tmp_path: Path) -> None:
    for name, content in (
        ("a.png", png(30, 20)),
        ("b.jpg", JPEG),
        ("c.webp", WEBP),
        ("w.png", png(3000, 10)),
    ):
        (tmp_path / "vault" / name).write_bytes(content)
    result = await export_markdown(
        "![a](a.png) ![b](b.jpg) ![c](c.webp) ![w](w.png)", format_="docx"
    )
    word = read_docx(result.file.path)
    assert result.warnings == []
    assert word.pictures == ["a", "b", "c", "w"]
    assert not any(media[8:12] == b"WEBP" for media in word.media)
    widths = [shape.width for shape in word.document.inline_shapes]
    section = word.document.sections[0]
    assert section.page_width
    assert section.left_margin
    assert widths[0] == 30 * 9525
    assert widths[3] == pytest.approx(section.page_width - 2 * section.left_margin, abs=9525)


async def test_characters_that_xml_forbids(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(
        export_markdown, "a\x01b `c\x1b` [x](https://e.org/\x02)\n\n```\nf\x7fg\n```", title="t\x03"
    )
    assert "\ufffd" in word.text


async def test_a_form_feed_is_a_space(export_markdown: ExportMarkdown) -> None:
    """HTML takes it as white space; the XML of a Word document can't hold it at all."""
    text = "# h\x0ci\n\na\x0cb `c\x0cd` &#12;\n\n```\ne\x0cf\n```"
    word = await docx_of(export_markdown, text, title="t\x0cu")
    assert word.document.core_properties.title == "t u"
    for shown in ("t u", "h i", "a b", "c d", "e f"):
        assert shown in word.text


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice isn't here")
async def test_another_program_opens_it(export_markdown: ExportMarkdown, tmp_path: Path) -> None:
    result = await export_markdown(EVERYTHING + "\n\n一二三", title="题目", format_="docx")
    await asyncio.to_thread(convert, result.file.path, tmp_path)
    pdf = read_pdf(tmp_path / "pdf" / f"{result.file.path.stem}.pdf")
    words = pdf.words
    for part in ("题目", "Headingone", "3.", "three", "quoted", "Thenote.", "一二三"):
        assert part in words


def convert(file: Path, folder: Path) -> None:
    """Let LibreOffice make a PDF of *file* in the folder ``pdf``."""
    command = [
        "soffice",
        f"-env:UserInstallation=file://{folder}/profile",
        "--headless",
        "--convert-to",
        "pdf",
        "--outdir",
        str(folder / "pdf"),
        str(file),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
