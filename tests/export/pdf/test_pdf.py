"""The document tree becomes PDF."""

import dataclasses
import socket
from pathlib import Path

import pytest

from sidecar.export.colours.themes import THEMES
from sidecar.export.document import Metadata
from sidecar.export.schemas import ExportOptions, PageSize, Palette
from sidecar.kernel.catalogue import localise
from sidecar.plots.service import CHART_THEMES
from tests.export.conftest import ExportMarkdown
from tests.export.pictures.samples import JPEG, WEBP, png
from tests.export.reading_pages import Pdf, read_pdf
from tests.export.test_document import EVERYTHING

PALETTE = Palette(
    page="#fdf6e3",
    surface="#eee8d5",
    text="#073642",
    muted="#586e75",
    code="#6c2ec4",
    border="#b58900",
    accent="#cb4b16",
)
THEMED = """\
# Heading

Text with `code` and [a link](https://example.org) and $x^2$.

> quoted

| a | b |
|---|---|
| 1 | 2 |

```
plain code
```

```python
def f(): return 1
```

```mermaid
graph TD
```

```plot
x
```
"""


async def pdf_of(export: ExportMarkdown, markdown: str, **more: object) -> Pdf:
    result = await export(markdown, format_="pdf", **more)
    return read_pdf(result.file.path)


@pytest.mark.proves("export.render.math-mathtext", "export.render.plot-pdf")
async def test_every_part_of_the_document_is_there(export_markdown: ExportMarkdown) -> None:
    pdf = await pdf_of(export_markdown, EVERYTHING, title="The title")
    words = pdf.words
    for part in (
        "Thetitle",
        "Headingone",
        "emphasis",
        "strong",
        "struck",
        "code",
        "altwords",
        "open",
        "done",
        "deeper",
        "3.three",
        "left",
        "centre",
        "quoted",
        'print("code")',
        "graphTD;A-->B",
        "Thenote.",
    ):
        assert part in words, part
    assert "FrontMatter" not in words
    # Formula and plot are drawn, and with lines, not pixels.
    assert "sin(x)" not in words
    assert r"\int" not in words
    assert pdf.bitmaps == 0
    assert "#0969da" in pdf.colours


async def test_chinese_is_set_in_embedded_fonts(export_markdown: ExportMarkdown) -> None:
    text = (
        "在**现代**操作系统中，*进程*是资源分配的基本单位（线程是调度单位）。한국어 日本語かな。"
        * 30
    )
    pdf = await pdf_of(export_markdown, f"# 操作系统\n\n{text}\n\n```\n代码：注释 abc\n```")
    fonts = pdf.fonts
    assert fonts
    assert all(embedded and subset for _, embedded, subset in fonts), fonts
    assert pdf.words.count("现代操作系统中，进程是资源分配的基本单位") == 30
    assert "代码：注释abc" in pdf.words
    # A line neither begins with closing punctuation nor ends with an opening one.
    for line in pdf.text.splitlines():
        assert not line.strip().startswith(("，", "。", "）", "、"))
        assert not line.strip().endswith("（")


@pytest.mark.proves("export.options.page-size")
async def test_pages_have_the_size_asked_for(export_markdown: ExportMarkdown) -> None:
    sizes: dict[PageSize, tuple[int, int]] = {"A4": (595, 842), "Letter": (612, 792)}
    for size, points in sizes.items():
        pdf = await pdf_of(export_markdown, "text", options=ExportOptions(page_size=size))
        assert pdf.size == points


async def test_bookmarks_numbers_and_links(export_markdown: ExportMarkdown) -> None:
    chapters = "\n\n".join(f"# Chapter {n}\n\n{'words ' * 600}" for n in range(1, 6))
    text = (
        f"[inside](#chapter-5) [outside](https://example.org/x) note[^1]\n\n{chapters}\n\n[^1]: N."
    )
    pdf = await pdf_of(export_markdown, text)
    assert pdf.pages >= 4
    assert f"2/{pdf.pages}" in pdf.words
    content = pdf.content.decode("latin-1") + pdf.streams
    assert content.count("/Title") >= 5
    assert "https://example.org/x" in content
    assert "/Dest" in content


@pytest.mark.proves("export.options.include-title", "export.options.include-metadata")
async def test_title_and_metadata(export_markdown: ExportMarkdown) -> None:
    metadata = Metadata(("physics", "高数"), "2026-08-31T10:30:00.000Z", "2026-09-01T08:00:00.000Z")
    for wanted in (True, False):
        options = ExportOptions(include_title=wanted, include_metadata=wanted)
        pdf = await pdf_of(
            export_markdown, "text", title="标题", metadata=metadata, options=options
        )
        assert pdf.info["Title"] == "标题"
        for part in ("标题", "physics,高数", metadata.created_at, metadata.updated_at):
            assert (part in pdf.words) is wanted


@pytest.mark.proves("export.palette.pdf", "export.theme.pdf-everything", "export.theme.no-css")
async def test_a_palette_colours_everything(export_markdown: ExportMarkdown) -> None:
    options = ExportOptions(theme_id="dark", palette=PALETTE)
    pdf = await pdf_of(export_markdown, THEMED, options=options)
    used = pdf.colours
    for name, colour in PALETTE.model_dump().items():
        assert colour in used, name
    # Nothing has a colour of light or dark paper: no white, no black, none of the dark theme.
    assert not used & {"#ffffff", "#000000", "#0d1117", "#f6f8fa", "#e6edf3"}
    image = pdf.page()
    corners = [image.getpixel(place) for place in ((1, 1), (image.width - 2, image.height - 2))]
    assert corners == [(0xFD, 0xF6, 0xE3)] * 2


@pytest.mark.proves("export.theme.builtin", "export.theme.unknown")
async def test_each_built_in_theme_has_its_colours(export_markdown: ExportMarkdown) -> None:
    seen = set()
    for theme_id, colours in THEMES.items():
        pdf = await pdf_of(export_markdown, THEMED, options=ExportOptions(theme_id=theme_id))
        wanted = {colours.page, colours.surface, colours.text, colours.border, colours.accent}
        used = pdf.colours
        assert wanted | {colours.code_text, CHART_THEMES[theme_id].series[0]} <= used
        seen.add(frozenset(used))
    assert len(seen) == 6
    options = ExportOptions(theme_id="neon")
    result = await export_markdown(THEMED, format_="pdf", options=options)
    assert read_pdf(result.file.path).page().getpixel((1, 1)) == (255, 255, 255)
    assert "warning.export_theme_unknown" in [w.key for w in result.warnings]


@pytest.mark.proves("export.options.code-theme")
async def test_code_takes_the_hues_of_its_theme(export_markdown: ExportMarkdown) -> None:
    seen = set()
    for theme in ("github-light", "monokai", "solarized-light"):
        options = ExportOptions(code_theme=theme, theme_id="dark")
        pdf = await pdf_of(
            export_markdown, "```python\ndef f(): return 'x' + 1\n```", options=options
        )
        seen.add(frozenset(pdf.colours))
        # On the document's own ground all of it can be read.
        assert THEMES["dark"].surface in pdf.colours
    assert len(seen) == 3


async def test_long_lines_and_wide_tables_stay_on_the_page(export_markdown: ExportMarkdown) -> None:
    columns = 24
    table = "\n".join(
        [
            "|" + "|".join(f"h{n}" for n in range(columns)) + "|",
            "|" + "---|" * columns,
            "|" + "|".join(f"value{n}" for n in range(columns)) + "|",
        ]
    )
    code = "x = " + "verylongname_" * 60 + "END"
    word = "unbreakable" * 40 + "STOP"
    markdown = f"```python\n{code}\n```\n\n{word}\n\n{table}\n\n> - > {word}\n"
    pdf = await pdf_of(export_markdown, markdown)
    words = pdf.words
    assert code.replace(" ", "") in words
    assert words.count(word) == 2
    assert "value23" in words
    # The margins at both sides are empty on each page.
    for number in range(1, pdf.pages + 1):
        image = pdf.page(number)
        edge = round(image.width * 16 / 210)
        for side in (
            image.crop((0, 0, edge, image.height)),
            image.crop((image.width - edge, 0, *image.size)),
        ):
            assert len(side.getcolors() or []) == 1


async def test_short_cells_beside_long_ones_keep_their_line(
    export_markdown: ExportMarkdown,
) -> None:
    long = "很长的说明文字，需要在单元格内换行，" * 8
    markdown = f"| 抢占 | b | c |\n|---|---|---|\n| 是/否 | {long} | {long} |\n"
    pdf = await pdf_of(export_markdown, markdown)
    assert {"抢占", "是/否"} <= set(pdf.text.split())


async def test_a_table_of_more_columns_than_a_page_has_keeps_its_words(
    export_markdown: ExportMarkdown,
) -> None:
    row = "|" + "|".join(f"v{n}" for n in range(70)) + "|\n"
    markdown = row + "|" + "-|" * 70 + "\n" + row
    for format_ in ("pdf", "docx"):
        result = await export_markdown(markdown, format_=format_)
        assert [w.key for w in result.warnings] == ["warning.export_table_too_wide"]
    assert "v69" in read_pdf((await export_markdown(markdown, format_="pdf")).file.path).words


async def test_pictures_of_the_vault(export_markdown: ExportMarkdown, tmp_path: Path) -> None:
    for name, content in (("a.png", png(30, 20)), ("b.jpg", JPEG), ("c.webp", WEBP)):
        (tmp_path / "vault" / name).write_bytes(content)
    result = await export_markdown("![a](a.png) ![b](b.jpg) ![c](c.webp)", format_="pdf")
    pdf = read_pdf(result.file.path)
    assert result.warnings == []
    assert pdf.bitmaps >= 3
    colours = pdf.page(dots=72).getcolors(100_000) or []
    assert (255, 0, 0) in [colour for _, colour in colours]


@pytest.mark.proves("export.images.remote-refused")
async def test_nothing_is_fetched(
    export_markdown: ExportMarkdown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    (tmp_path / "secret.txt").write_text("SECRET", encoding="utf-8")
    markdown = (
        "![a](https://example.org/a.png) ![b](//example.org/b.png)\n\n"
        f"![c](file://{tmp_path}/secret.txt)\n\n<img src='https://example.org/c.png'>\n\n"
        "<style>@import url(http://x/); body { background: url(https://example.org/d.png) }</style>\n\n"
        f"<object data='file://{tmp_path}/secret.txt'></object>"
    )
    pdf = await pdf_of(export_markdown, markdown)
    assert "SECRET" not in pdf.text
    assert pdf.bitmaps == 0


@pytest.mark.proves(
    "export.budget.pdf-none", "export.budget.pdf-output", "export.budget.pdf-source-length"
)
async def test_pdf_has_no_budgets(export_markdown: ExportMarkdown, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "large.png").write_bytes(png(extra=b"x" * 2_500_000))
    for number in range(70):
        (vault / f"{number}.png").write_bytes(png(2 + number, 2))
    long_formula = "+".join(["x"] * 400)
    deep_formula = "\\sqrt{" * 25 + "x" + "}" * 25
    many_curves = "\n".join(f"x + {n}" for n in range(20))
    parts = [
        "![big](large.png)",
        " ".join(f"![p]({n}.png)" for n in range(70)),
        " ".join(f"$x_{{{n}}}$" for n in range(70)),
        f"${long_formula}$",
        f"${deep_formula}$",
        f"```plot\n{many_curves}\n```",
        *(f"```plot\nx + {n}\n```" for n in range(66)),
        "```plot\n" + "+".join(["x"] * 4_500) + "\n```",
    ]
    result = await export_markdown("\n\n".join(parts), format_="pdf")
    assert result.warnings == []
    pdf = read_pdf(result.file.path)
    assert pdf.bitmaps == 71
    assert "$" not in pdf.text


@pytest.mark.proves("export.budget.pdf-checks-kept")
async def test_checks_hold_for_pdf_too(export_markdown: ExportMarkdown, tmp_path: Path) -> None:
    (tmp_path / "vault" / "broken.png").write_bytes(png()[:-20])
    markdown = (
        "![words](broken.png)\n\n```plot\n__import__('os')\n```\n\n```plot\nsin(1000000x)\n```"
    )
    result = await export_markdown(markdown, format_="pdf")
    assert [w.key for w in result.warnings] == [
        "warning.export_image_unreadable",
        "warning.FUNCTION_PLOT_EXPRESSION_UNSAFE",
    ]
    pdf = read_pdf(result.file.path)
    assert "words" in pdf.text
    assert "__import__" in pdf.text
    assert result.file.size < 2_000_000


@pytest.mark.parametrize("colour", ["#ffffff", "#000000", "#808080"])
async def test_any_palette_can_be_read(export_markdown: ExportMarkdown, colour: str) -> None:
    same = Palette(**dict.fromkeys(dataclasses.asdict(THEMES["light"]), colour))
    result = await export_markdown(THEMED, format_="pdf", options=ExportOptions(palette=same))
    assert read_pdf(result.file.path).pages == 1


async def test_characters_that_no_font_has_are_told_of(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown("a \U000f0001 b", format_="pdf")
    (warning,) = localise(result.warnings, "en")
    assert "\U000f0001" in warning
    unsaved = await export_markdown("a \U000f0001 b", format_="pdf", quote=False)
    assert "\U000f0001" not in str(localise(unsaved.warnings, "en"))
    assert len(unsaved.warnings) == 1
