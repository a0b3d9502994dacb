"""The text of documents that python-docx and LibreOffice made."""

import itertools
import zipfile
from pathlib import Path

import pytest
from docx import Document
from docx.oxml import parse_xml
from docx.shared import Inches
from PIL import Image

from sidecar.documents.docx_styles import _chinese, _letters, _roman
from sidecar.documents.service import DocumentService, ExtractedText
from tests.documents.samples import (
    NAMESPACES,
    WORD,
    converted,
    need_libreoffice,
    paragraph,
    word_file,
)

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def read(documents: DocumentService, path: Path, limit: int = 100_000) -> ExtractedText:
    return await documents.extract_text(path, WORD, name="报告.docx", limit=limit)


async def body(documents: DocumentService, xml: str, path: Path) -> str:
    return (await read(documents, word_file(xml, path))).text


async def test_a_document_becomes_markdown_in_its_order(
    documents: DocumentService, file: Path
) -> None:
    document = Document()
    document.sections[0].header.paragraphs[0].text = "页眉机密"
    document.sections[0].footer.paragraphs[0].text = "页脚"
    document.add_heading("季度报告", 0)
    document.add_heading("一、背景", 1)
    document.add_paragraph("今年的预算是 12 万元。\n另起一行\t制表")
    document.add_paragraph("苹果", style="List Bullet")
    document.add_paragraph("香蕉", style="List Bullet")
    document.add_paragraph("第一步", style="List Number")
    document.add_paragraph("第二步", style="List Number")
    table = document.add_table(3, 2)
    for row, column in itertools.product(range(3), range(2)):
        table.cell(row, column).text = f"行{row}|列{column}"
    table.cell(1, 0).merge(table.cell(2, 0)).text = "合并"
    document.add_heading("二、结论", 2)
    document.add_paragraph("完。")
    document.save(str(file))

    found = await read(documents, file)

    assert found.text == "\n".join(
        [
            "# 季度报告",
            "",
            "# 一、背景",
            "",
            "今年的预算是 12 万元。\n另起一行\t制表",
            "",
            "- 苹果",
            "- 香蕉",
            "",
            "1. 第一步",
            "2. 第二步",
            "",
            "| 行0\\|列0 | 行0\\|列1 |",
            "| --- | --- |",
            "| 合并 | 行1\\|列1 |",
            "|  | 行2\\|列1 |",
            "",
            "## 二、结论",
            "",
            "完。",
        ]
    )
    assert not found.truncated
    assert found.warnings == ()


@pytest.mark.parametrize("limit", [1, 7, 40, 41, 42, 200, 239, 240])
async def test_a_long_text_is_cut_at_the_limit_and_says_so(
    documents: DocumentService, file: Path, limit: int
) -> None:
    document = Document()
    for _ in range(20):
        document.add_paragraph("十个字的一段话在这里")
    document.save(str(file))
    whole = (await read(documents, file)).text
    assert len(whole) == 20 * 10 + 19 * 2 == 238

    found = await read(documents, file, limit)

    assert found.text == whole[:limit].rstrip()
    assert found.truncated == (limit < 238)


async def test_a_long_document_is_read_no_further_than_the_limit(
    documents: DocumentService, file: Path
) -> None:
    # Its end is broken, which nobody comes to see.
    found = await read(documents, word_file(paragraph("开头") * 200_000 + "<broken", file), 998)

    assert found.truncated
    assert len(found.text) == 998


async def test_footnotes_text_boxes_and_links_of_libreoffice(
    documents: DocumentService, tmp_path: Path
) -> None:
    need_libreoffice()
    source = tmp_path / "note.fodt"
    source.write_text(
        """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.text">
<office:body><office:text>
<text:h text:outline-level="1">研究笔记</text:h>
<text:p>正文<text:note text:id="n1" text:note-class="footnote"><text:note-citation>1</text:note-citation>
<text:note-body><text:p>来源：年报</text:p></text:note-body></text:note>之后，见
<text:a xlink:type="simple" xlink:href="https://example.com/a">网站</text:a>。</text:p>
<text:p><draw:frame draw:name="f" svg:width="5cm" svg:height="2cm" text:anchor-type="char">
<draw:text-box><text:p>框里的字</text:p></draw:text-box></draw:frame>框外的字</text:p>
<text:p>尾<text:note text:id="n2" text:note-class="endnote"><text:note-citation>i</text:note-citation>
<text:note-body><text:p>尾注内容</text:p></text:note-body></text:note></text:p>
</office:text></office:body></office:document>""",
        encoding="utf-8",
    )

    found = await read(documents, converted(source, "docx", tmp_path))

    lines = found.text.split("\n\n")
    assert lines[0] == "# 研究笔记"
    assert lines[1] == "正文[^1]之后，见 [网站](https://example.com/a)。"
    assert lines[2:4] == ["框外的字", "框里的字"]
    assert lines[4] == "尾[^2]"
    assert lines[5] == "[^1]: 来源：年报\n[^2]: 尾注内容"
    assert len(lines) == 6


async def test_a_text_box_that_is_there_for_two_programs_is_read_once(
    documents: DocumentService, file: Path
) -> None:
    box = f"<w:txbxContent>{paragraph('框')}</w:txbxContent>"
    xml = (
        "<w:p><w:r><mc:AlternateContent>"
        '<mc:Choice Requires="wps"><w:drawing><wp:inline><wps:wsp><wps:txbx>'
        f"{box}</wps:txbx></wps:wsp></wp:inline></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    assert await body(documents, xml, file) == "框"


async def test_what_was_deleted_or_hidden_is_not_read(
    documents: DocumentService, file: Path
) -> None:
    xml = (
        "<w:p><w:ins><w:r><w:t>加上</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>删去</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>移走</w:t></w:r></w:moveFrom>"
        "<w:moveTo><w:r><w:t>移来</w:t></w:r></w:moveTo>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>隐藏</w:t></w:r>"
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>可见</w:t></w:r></w:p>'
    )
    assert await body(documents, xml, file) == "加上移来可见"


async def test_of_a_field_only_the_result_is_read(documents: DocumentService, file: Path) -> None:
    def mark(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    xml = (
        f"<w:p>{mark('begin')}<w:r><w:instrText> IF </w:instrText></w:r>"
        f"{mark('begin')}<w:r><w:instrText>PAGE</w:instrText></w:r>{mark('separate')}"
        f"<w:r><w:t>条件</w:t></w:r>{mark('end')}{mark('separate')}<w:r><w:t>结果</w:t></w:r>"
        f"{mark('end')}<w:r><w:t>之后</w:t></w:r></w:p>"
        # One that is never closed takes no more than its own paragraph.
        f"<w:p>{mark('begin')}<w:r><w:t>没完</w:t></w:r></w:p>{paragraph('下一段')}"
    )
    assert await body(documents, xml, file) == "结果之后\n\n下一段"


async def test_content_controls_and_nested_tables_are_read(
    documents: DocumentService, file: Path
) -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("内一", "内二"))
    inner = f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    row = f"<w:tr><w:tc>{paragraph('外')}</w:tc><w:tc>{inner}{paragraph('')}</w:tc></w:tr>"
    frame = f"<w:tbl><w:tr><w:tc>{paragraph('框一')}{paragraph('框二')}</w:tc></w:tr></w:tbl>"
    xml = (
        f"<w:sdt><w:sdtPr/><w:sdtContent>{paragraph('控件')}<w:tbl><w:sdt><w:sdtContent>{row}"
        f"</w:sdtContent></w:sdt></w:tbl></w:sdtContent></w:sdt>{frame}"
    )
    text = await body(documents, xml, file)
    assert text.startswith("控件\n\n| 外 | ")
    assert "内一" in text and "内二" in text
    assert text.endswith("\n\n框一\n\n框二")


async def test_headings_and_lists_keep_the_numbers_that_readers_see(
    documents: DocumentService, tmp_path: Path
) -> None:
    document = Document()
    numbering = document.part.numbering_part.element
    levels = "".join(
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for level, kind, text in [
            (0, "chineseCountingThousand", "第%1章"),
            (1, "decimal", "%2."),
            (2, "lowerLetter", "%3)"),
            (3, "upperRoman", "(%4)"),
        ]
    )
    numbering.insert(
        0,
        parse_xml(f'<w:abstractNum {NAMESPACES} w:abstractNumId="77">{levels}</w:abstractNum>'),
    )
    numbering.append(
        parse_xml(
            f'<w:num {NAMESPACES} w:numId="77"><w:abstractNumId w:val="77"/></w:num>',
        )
    )

    def add(text: str, level: int, style: str | None = None) -> None:
        made = document.add_paragraph(text, style)
        made._p.get_or_add_pPr().append(
            parse_xml(
                f'<w:numPr {NAMESPACES}><w:ilvl w:val="{level}"/><w:numId w:val="77"/></w:numPr>'
            )
        )

    add("总则", 0, "Heading 1")
    add("甲", 1)
    add("乙", 1)
    add("细", 3)
    add("分则", 0, "Heading 1")
    add("丙", 1)
    document.save(str(tmp_path / "numbers"))

    found = await read(documents, tmp_path / "numbers")

    assert found.text == (
        "# 第一章 总则\n\n   1. 甲\n   2. 乙\n\n(I) 细\n\n# 第二章 分则\n\n   1. 丙"
    )


async def test_a_list_that_begins_anew_begins_where_it_says(
    documents: DocumentService, file: Path
) -> None:
    numbering = (
        f'<w:numbering {NAMESPACES}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0">'
        '<w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0">'
        '<w:startOverride w:val="5"/></w:lvlOverride></w:num></w:numbering>'
    )
    items = "".join(
        paragraph(text, f'<w:numPr><w:numId w:val="{list_id}"/></w:numPr>')
        for text, list_id in [("甲", 1), ("乙", 1), ("丙", 2), ("丁", 3), ("戊", 3), ("己", 1)]
    )
    path = word_file(items, file, parts={"word/numbering.xml": numbering.encode()})

    found = await read(documents, path)

    assert found.text.split() == [
        "1.",
        "甲",
        "2.",
        "乙",
        "3.",
        "丙",
        "5.",
        "丁",
        "6.",
        "戊",
        "4.",
        "己",
    ]


async def test_formulas_are_written_as_latex(documents: DocumentService, file: Path) -> None:
    def run(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    xml = (
        f"<w:p><m:oMath><m:sSup><m:e>{run('x')}</m:e><m:sup>{run('2')}</m:sup></m:sSup>{run('=')}"
        f"<m:f><m:num>{run('a')}</m:num><m:den>{run('b')}</m:den></m:f></m:oMath></w:p>"
        f"<w:p><m:oMathPara><m:oMath><m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>"
        f"<m:sub>{run('i=1')}</m:sub><m:sup>{run('n')}</m:sup><m:e><m:rad><m:deg/><m:e>{run('i')}"
        "</m:e></m:rad></m:e></m:nary></m:oMath></m:oMathPara></w:p>"
    )
    assert await body(documents, xml, file) == (
        r"$x^{2}=\frac{a}{b}$" + "\n\n" + r"$\sum_{i=1}^{n} \sqrt{i}$"
    )


async def test_pictures_are_counted_and_their_descriptions_kept(
    documents: DocumentService, tmp_path: Path
) -> None:
    Image.new("RGB", (20, 20), "red").save(tmp_path / "red.png")
    document = Document()
    document.add_paragraph("图：")
    shape = document.add_picture(str(tmp_path / "red.png"), width=Inches(1))
    shape._inline.docPr.set("descr", "一张\n红图")
    document.save(str(tmp_path / "pictures"))

    found = await read(documents, tmp_path / "pictures")

    assert found.text == "图：\n\n![一张 红图]"
    assert [(one.key, one.params["count"]) for one in found.warnings] == [
        ("attachment.pictures_left_out", 1)
    ]


async def test_a_document_of_the_strict_form_is_read(
    documents: DocumentService, tmp_path: Path
) -> None:
    document = Document()
    document.add_heading("标题", 1)
    document.save(str(tmp_path / "transitional"))
    with zipfile.ZipFile(tmp_path / "transitional") as source:
        parts = {name: source.read(name) for name in source.namelist()}
    strict = {
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main": b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        b"http://schemas.openxmlformats.org/officeDocument/2006/relationships": b"http://purl.oclc.org/ooxml/officeDocument/relationships",
    }
    with zipfile.ZipFile(tmp_path / "strict", "w") as target:
        for name, content in parts.items():
            for old, new in strict.items():
                content = content.replace(old, new)  # noqa: PLW2901
            target.writestr(name, content)

    assert (await read(documents, tmp_path / "strict")).text == "# 标题"


async def test_numbers_in_words() -> None:
    assert [_chinese(n) for n in (1, 10, 11, 20, 105, 110, 1001, 2030)] == [
        "一", "十", "十一", "二十", "一百〇五", "一百一十", "一千〇一", "二千〇三十",
    ]  # fmt: skip
    assert [_roman(n) for n in (4, 9, 44, 1999)] == ["iv", "ix", "xliv", "mcmxcix"]
    assert [_letters(n) for n in (1, 26, 27, 53)] == ["a", "z", "aa", "aaa"]
