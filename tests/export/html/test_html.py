"""The document tree becomes HTML that stands on its own."""

import pytest

from sidecar.export.colours.themes import CODE_THEMES, THEMES
from sidecar.export.document import Metadata
from sidecar.export.notices import MAX_WARNINGS
from sidecar.export.schemas import ExportOptions, Palette
from sidecar.kernel.catalogue import localise
from tests.export.conftest import ExportMarkdown
from tests.export.reading import Element, assert_inert, read_html
from tests.export.test_document import EVERYTHING

HOSTILE = """\
<script>alert(1)</script>

<img src=x onerror=alert(1)> and <b onclick="x()">bold</b> and <style>@import url(http://x/)</style>

[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](file:///etc/passwd)
[e](//evil.example/) <javascript:alert(1)> [f](vbscript:x) [g]( &#106;avascript:x )

![x](javascript:alert(1)) ![y](https://evil.example/p.png) ![z](data:image/svg+xml;base64,PHN2Zz4=)

<iframe src="https://evil.example/"></iframe>

<link rel="stylesheet" href="https://evil.example/x.css">

```"><script>alert(1)</script>
</code></pre><script>alert(1)</script>
```

$</code><script>alert(1)</script>$

# </title><script>alert(1)</script>

[h](https://ok.example/"onmouseover="x "t\\"><script>")
"""


def style_of(document: Element) -> str:
    return document.one("style").text


async def test_every_part_of_the_document_is_there(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown(EVERYTHING)
    document = read_html(result.file.path.read_bytes())
    assert_inert(document)
    main = document.one("main")
    assert [h.text for h in main.all("h1")] == ["Heading one"]
    assert main.one("em").text == "emphasis"
    assert [e.text for e in main.all("strong")] == ["one", "strong"]
    assert main.one("del").text == "struck"
    assert main.all("a")[0].attributes["href"] == "https://example.org"
    assert main.one("blockquote").text.strip() == "quoted"
    assert [e.text for e in main.all("th")] == ["left", "centre"]
    assert [e.text for e in main.all("td")] == ["1", "2"]
    assert main.all("td")[1].classes == ["center"]
    assert [("checked" in e.attributes) for e in main.all("input")] == [False, True]
    assert {"start": "3"} in [e.attributes for e in main.all("ol")]
    formulas = [e.attributes["aria-label"] for e in main.all("svg") if "formula" in e.classes]
    assert formulas == ["x^2", "\\int_0^1 x\\,dx"]
    sources = [e.text for e in main.all("code") if e.attributes.get("class", "").startswith("lang")]
    assert sources == ['print("code")\n', "graph TD; A-->B\n"]
    assert len([e for e in main.all("svg") if "plot" in e.classes]) == 1
    assert "alt words" in main.text
    reference = next(e for e in main.all("a") if "footnote" in e.classes)
    (note,) = [
        e for e in main.all("li") if f"#{e.attributes.get('id')}" == reference.attributes["href"]
    ]
    assert note.text.strip().startswith("The note.")


@pytest.mark.proves("export.html.self-contained")
async def test_nothing_is_run_or_fetched(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown(HOSTILE, title="</title><script>alert(1)</script>")
    document = read_html(result.file.path.read_bytes())
    assert_inert(document)
    assert document.one("title").text == "</title><script>alert(1)</script>"
    assert "<script>alert(1)</script>" in document.one("main").text
    # An address within a text is a link; nothing follows it but a reader.
    text, link = document.all("a")
    assert text.attributes["href"] == "http://x/"
    assert link.attributes.keys() == {"href", "title", "rel"}
    assert link.attributes["href"] == "https://ok.example/%22onmouseover=%22x"


async def test_what_is_not_shown_is_told_of(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown(
        "$\\a$\n\n```mermaid\npie\n```\n\n```plot\ny\n```\n\n<div>x</div>\n\n[a](b.md)"
    )
    english, chinese = localise(result.warnings, "en"), localise(result.warnings, "zh-CN")
    assert len(english) == 5
    for line, word in ((1, "formula"), (3, "diagram"), (8, "plot"), (11, "HTML"), (13, "link")):
        assert any(word in warning and f"line {line}" in warning for warning in english)
    assert all("行" in warning for warning in chinese)


async def test_warnings_are_bounded(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown("$\\a$\n\n" * (MAX_WARNINGS + 50))
    assert len(result.warnings) == MAX_WARNINGS + 1


@pytest.mark.proves("export.options.include-title")
async def test_the_title_is_added_if_wanted(export_markdown: ExportMarkdown) -> None:
    for wanted, expected in ((True, ["Title & <more>", "Body"]), (False, ["Body"])):
        options = ExportOptions(include_title=wanted)
        result = await export_markdown("# Body", title="Title & <more>", options=options)
        document = read_html(result.file.path.read_bytes())
        assert [h.text for h in document.all("h1")] == expected
        assert document.one("title").text == "Title & <more>"


async def test_a_title_that_the_text_has_is_not_repeated(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown("# Same\n\ntext", title="Same")
    assert [h.text for h in read_html(result.file.path.read_bytes()).all("h1")] == ["Same"]


@pytest.mark.proves("export.options.include-metadata")
async def test_metadata_is_added_if_wanted(export_markdown: ExportMarkdown) -> None:
    metadata = Metadata(("physics", "a<b"), "2026-08-31T10:30:00.000Z", "2026-09-01T08:00:00.000Z")
    for wanted in (True, False):
        options = ExportOptions(include_metadata=wanted)
        result = await export_markdown("text", title="T", metadata=metadata, options=options)
        words = read_html(result.file.path.read_bytes()).one("main").text
        for part in ("physics, a<b", metadata.created_at, metadata.updated_at):
            assert (part in words) is wanted


@pytest.mark.proves("export.theme.html-limited", "export.theme.ids")
async def test_each_built_in_theme_has_its_colours(export_markdown: ExportMarkdown) -> None:
    assert set(THEMES) == {"light", "dark", "sepia", "forest", "ocean", "high-contrast"}
    styles = set()
    for theme_id, colours in THEMES.items():
        result = await export_markdown("text", options=ExportOptions(theme_id=theme_id))
        style = style_of(read_html(result.file.path.read_bytes()))
        assert f"--page: {colours.page};" in style
        assert f"color-scheme: {'dark' if colours.is_dark else 'light'};" in style
        assert result.warnings == []
        styles.add(style)
    assert len(styles) == 6


@pytest.mark.proves("export.theme.unknown")
async def test_an_unknown_theme_is_light_and_told_of(export_markdown: ExportMarkdown) -> None:
    options = ExportOptions(theme_id="neon<x>")
    result = await export_markdown("text", options=options)
    assert "--page: #ffffff;" in style_of(read_html(result.file.path.read_bytes()))
    assert "neon<x>" in localise(result.warnings, "en")[0]


async def test_a_palette_wins_over_the_theme(export_markdown: ExportMarkdown) -> None:
    colours = {
        "page": "#fffff1",
        "surface": "#eeeee2",
        "text": "#111113",
        "muted": "#555554",
        "code": "#332205",
        "border": "#cccc06",
        "accent": "#000077",
    }
    options = ExportOptions(theme_id="unknown", palette=Palette(**colours))
    result = await export_markdown("text", options=options)
    style = style_of(read_html(result.file.path.read_bytes()))
    assert all(f"--{name}: {colour};" in style for name, colour in colours.items())
    assert result.warnings == []


async def test_code_takes_the_colours_of_its_theme(export_markdown: ExportMarkdown) -> None:
    styles = set()
    for theme in CODE_THEMES:
        result = await export_markdown(
            "```python\ndef f(): pass\n```", options=ExportOptions(code_theme=theme)
        )
        document = read_html(result.file.path.read_bytes())
        keyword = document.one("pre").all("span")[0]
        assert (keyword.text, keyword.classes) == ("def", ["k"])
        styles.add(style_of(document))
    assert len(styles) == len(CODE_THEMES)


async def test_pages_have_the_size_asked_for(export_markdown: ExportMarkdown) -> None:
    for size in ("A4", "Letter"):
        result = await export_markdown("text", options=ExportOptions(page_size=size))
        assert f"size: {size};" in style_of(read_html(result.file.path.read_bytes()))


@pytest.mark.parametrize(
    ("markdown", "language"),
    [
        ("你好，世界", "zh-CN"),
        ("これはテストです", "ja"),
        ("안녕하세요 세계", "ko"),
        ("Hello", None),
    ],
)
async def test_the_language_is_told_to_the_browser(
    export_markdown: ExportMarkdown, markdown: str, language: str | None
) -> None:
    result = await export_markdown(markdown)
    document = read_html(result.file.path.read_bytes())
    assert document.one("html").attributes.get("lang") == language
    assert document.one("main").text.strip() == markdown
    assert "Noto Sans CJK SC" in style_of(document)


async def test_links_within_the_document_find_their_heading(
    export_markdown: ExportMarkdown,
) -> None:
    result = await export_markdown("# 第一 章!\n\n# A\n\n# A\n\n# a-1\n\n[x](#第一-章) [y](#a-1)")
    document = read_html(result.file.path.read_bytes())
    ids = [h.attributes["id"] for h in document.all("h1")]
    assert ids == ["第一-章", "a", "a-1", "a-1-1"]
    assert [a.attributes["href"] for a in document.all("a")] == ["#第一-章", "#a-1"]


async def test_characters_that_html_forbids_are_replaced(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown("a\x01b\x0bc\x0c `d\x1be`\n\n```\nf\x7fg\n```")
    content = result.file.path.read_text(encoding="utf-8")
    assert not any(ord(c) < 32 and c not in "\n\t\r" for c in content)
    assert read_html(content).one("main").text.count("\ufffd") == 4


@pytest.mark.proves("export.hostile.bounded")
@pytest.mark.parametrize(
    "markdown",
    [
        ">" * 10_000 + " deep",
        "\n".join(" " * depth + "- a" for depth in range(600)),
        "[" * 200_000,
        "![" * 100_000,
        "^[" * 100_000,
        "**a " * 25_000 + " b**" * 25_000,
        "|" + "a|" * 2000 + "\n|" + "-|" * 2000 + "\n" + "|1|\n" * 500,
        "|a|b|\n|-|-|\n" + "|1|2|\n" * 10_000,
        "&#x1F600;" * 20_000,
        "`a``" * 50_000,
        "<a " * 66_000,
        "```python\n" + "(" * 199_000 + "\n```",
    ],
    ids=lambda markdown: markdown[:8].strip(),
)
async def test_hostile_texts_are_exported_all_the_same(
    export_markdown: ExportMarkdown, markdown: str
) -> None:
    result = await export_markdown(markdown)
    document = read_html(result.file.path.read_bytes())
    assert_inert(document)
    assert result.file.size < 5_000_000
