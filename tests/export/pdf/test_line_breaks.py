"""Words of several elements are broken where a page needs it."""

import pytest

from sidecar.export.pdf.line_breaks import LONG_WORD, breakable
from tests.export.conftest import ExportMarkdown
from tests.export.needs import need_pdf
from tests.export.reading_pages import read_pdf

PAIR = "**abcdefghij**klmnop"


@pytest.mark.parametrize(
    "markup",
    [
        "<p>short<strong>word</strong></p>",
        "<p>" + "many words of <em>some</em> letters " * 9 + "</p>",
        "<p>" + "中<strong>文</strong>" * 60 + "</p>",
        "<p>" + "a" * 60 + "</p>",
        "<p>" + "a" * 30 + "<br>" + "<em>b</em>" * 30 + "</p>",
    ],
)
def test_what_breaks_by_itself_stays_as_it_is(markup: str) -> None:
    assert breakable(markup) == markup


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (
            f"<p>中<strong>{'a' * 30}</strong>{'b' * 30}</p>",
            f"<p>中<strong>{'a' * 30}</strong><wbr>{'b' * 30}</p>",
        ),
        (f"<p>(<code>{'a' * 60}</code></p>", f"<p>(<wbr><code>{'a' * 60}</code></p>"),
        (
            "<table><td><em>one</em>,<em>anotherone</em></td></table><p><em>one</em>,<em>anotherone</em></p>",
            "<table><td><em>one</em>,<wbr><em>anotherone</em></td></table><p><em>one</em>,<em>anotherone</em></p>",
        ),
    ],
)
def test_a_long_word_is_broken_between_its_elements(markup: str, expected: str) -> None:
    assert breakable(markup) == expected


def test_a_very_long_word_is_broken_within() -> None:
    broken = breakable(f"<p>{'a' * LONG_WORD}</p>")
    assert broken.replace("<wbr>", "") == f"<p>{'a' * LONG_WORD}</p>"
    assert broken.count("<wbr>") > 50


async def test_words_of_several_elements_stay_on_the_page(export_markdown: ExportMarkdown) -> None:
    cell = "`identifier`,**another**," * 5 + "LAST"
    markdown = (
        f"前 {PAIR * 8}END\n\n(`{'code_' * 30}STOP`\n\n| a | b |\n|---|---|\n| {cell} | b |\n"
    )
    pdf = read_pdf((await export_markdown(markdown, format_="pdf")).file.path)
    words = pdf.words
    assert PAIR.replace("*", "") * 8 + "END" in words
    assert "code_" * 30 + "STOP" in words
    assert "LAST" in words
    image = pdf.page(1)
    edge = round(image.width * 16 / 210)
    right = image.crop((image.width - edge, 0, *image.size))
    assert len(right.getcolors() or []) == 1


@pytest.mark.proves("export.hostile.bounded")
async def test_the_work_grows_with_the_length_of_a_word(
    export_markdown: ExportMarkdown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lays out pages asks each part of a word whether it can be broken, and again for each part."""
    need_pdf()
    await export_markdown("warm", format_="pdf")
    from weasyprint.layout import inline

    asked = 0
    ask = inline.can_break_inside

    def counted(box: object) -> object:
        nonlocal asked
        asked += 1
        return ask(box)

    monkeypatch.setattr(inline, "can_break_inside", counted)
    counts = []
    for pairs in (200, 800):
        asked = 0
        await export_markdown("**a**b" * pairs, format_="pdf")
        counts.append(asked)
    assert counts[1] < 6 * counts[0], counts
