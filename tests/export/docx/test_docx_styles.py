"""What has a style of its own in a Word file: code, callouts, footnotes, tasks."""

import io
import zipfile

import pytest
from docx.enum.text import WD_LINE_SPACING

from sidecar.export.colours.themes import THEMES, CodeTheme, contrast
from sidecar.export.schemas import ExportOptions
from tests.export.conftest import ExportMarkdown
from tests.export.docx.test_docx import docx_of
from tests.export.reading_pages import WORD, Word

CODE = 'def schedule(queue):\n    return "中文", 3.14  # 注释\n'


def runs_of(word: Word) -> dict[str, str]:
    """Return the style of each run of code, by its words."""
    (block,) = (p for p in word.document.paragraphs if p.style and p.style.name == "CodeBlock")
    return {run.text.strip(): str(run.style.name) for run in block.runs if run.text.strip()}


async def test_code_is_marked_as_in_the_other_formats(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, f"```python\n{CODE}```\n")
    styles = runs_of(word)
    assert styles["def"] == styles["return"] == "CodeKeyword"
    assert styles["schedule"] == "CodeNameFunction"
    assert styles["# 注释"].startswith("CodeComment")
    assert styles["3.14"] == "CodeLiteral"
    assert "Default Paragraph Font" in styles.values()
    # Nothing of it is lost: lines, blanks, Chinese.
    (block,) = (p for p in word.document.paragraphs if p.style and p.style.name == "CodeBlock")
    assert block.text == CODE.removesuffix("\n")
    looks = word.document.styles
    assert str(looks["CodeKeyword"].font.color.rgb) == "CF222E"
    assert looks["CodeComment"].font.italic


@pytest.mark.parametrize("theme", ["monokai", "github-light"])
async def test_marked_code_can_be_read_on_its_light_ground(
    export_markdown: ExportMarkdown, theme: CodeTheme
) -> None:
    options = ExportOptions(code_theme=theme)
    word = await docx_of(export_markdown, f"```python\n{CODE}```\n", options=options)
    colours = [
        f"#{style.font.color.rgb}".lower()
        for style in word.document.styles
        if str(style.name).startswith("Code") and style.name != "CodeBlock" and style.font.color.rgb
    ]
    assert len(colours) > 3
    assert all(contrast(colour, THEMES["light"].surface) >= 3.5 for colour in colours)


async def test_code_of_no_known_language_stays_plain(export_markdown: ExportMarkdown) -> None:
    for markdown in ("```\nplain = 1\n```", "```nosuchlanguage\nplain = 1\n```"):
        assert runs_of(await docx_of(export_markdown, markdown)).keys() == {"plain = 1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("```\none\n```", "```\nother\n```"),
        ("> one", "<!-- -->\n\n> other"),
        ("> [!note] T\n> one", "<!-- -->\n\n> [!tip] U\n> other"),
        ("```\none\n```", "```mermaid\nother\n```"),
    ],
)
async def test_neighbours_keep_apart(export_markdown: ExportMarkdown, one: str, other: str) -> None:
    """Word draws one box around paragraphs of the same borders."""
    word = await docx_of(export_markdown, f"{one}\n\n{other}\n")
    texts = [p.text for p in word.document.paragraphs]
    first = texts.index("one")
    assert texts[first + 1] == ""
    gap = word.document.paragraphs[first + 1]
    assert gap.style is not None
    assert gap.style.name == "Normal"
    assert gap.paragraph_format.line_spacing_rule in (
        WD_LINE_SPACING.MULTIPLE,
        WD_LINE_SPACING.SINGLE,
    )


async def test_a_quote_is_one(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, "> one\n>\n> two\n>\n> > three\n")
    assert [(p.style.name if p.style else "", p.text) for p in word.document.paragraphs] == [
        ("Quote", "one"),
        ("Quote", "two"),
        ("Quote", "three"),
    ]


async def test_callouts_have_a_title_and_a_box(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, "> [!note] 标题\n> 内容\n>\n> - 列表\n\n> quote\n")
    found = [(p.style.name if p.style else "", p.text) for p in word.document.paragraphs if p.text]
    assert found == [
        ("CalloutTitle", "标题"),
        ("Callout", "内容"),
        ("Callout", "列表"),
        ("Quote", "quote"),
    ]
    element = word.document.styles["Callout"].element
    assert list(element.iter(f"{WORD}shd"))
    assert list(element.iter(f"{WORD}pBdr"))


async def test_all_of_a_footnote_looks_like_one(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, "text[^1]\n\n[^1]: one\n\n    two\n\n    - three\n")
    notes = word.part("word/footnotes.xml")
    styles = [
        style.attrib[f"{WORD}val"]
        for paragraph in notes.iter(f"{WORD}p")
        for style in paragraph.iter(f"{WORD}pStyle")
    ]
    assert styles == ["FootnoteText", "FootnoteText", "ListParagraph"]


async def test_the_box_of_a_task_stands_where_a_bullet_would(
    export_markdown: ExportMarkdown,
) -> None:
    word = await docx_of(export_markdown, "- [ ] open\n- plain\n")
    task, plain = word.document.paragraphs
    assert task.text == "☐\topen"
    assert task.paragraph_format.first_line_indent == plain.paragraph_format.first_line_indent
    assert task.paragraph_format.left_indent == plain.paragraph_format.left_indent


async def test_word_has_nothing_to_mend(export_markdown: ExportMarkdown) -> None:
    word = await docx_of(export_markdown, "# 标题\n\n```python\nx = 1\n```\n")
    # A second set of styles that doesn't agree with the first one is a reason for a repair.
    assert not [name for name in word.names if "stylesWithEffects" in name]
    with zipfile.ZipFile(io.BytesIO(word.content)) as archive:
        assert b"stylesWithEffects" not in b"".join(map(archive.read, archive.namelist()))
    settings = word.part("word/settings.xml")
    modes = {
        e.attrib[f"{WORD}name"]: e.attrib[f"{WORD}val"]
        for e in settings.iter(f"{WORD}compatSetting")
    }
    assert modes["compatibilityMode"] == "15"
    (language,) = settings.iter(f"{WORD}themeFontLang")
    assert language.attrib[f"{WORD}eastAsia"] == "zh-CN"
    (zoom,) = settings.iter(f"{WORD}zoom")
    assert zoom.attrib[f"{WORD}percent"] == "100"
