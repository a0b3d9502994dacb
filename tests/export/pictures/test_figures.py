"""What stands in the place of formulas, diagrams, plots and images, and what of them is lost."""

import ast
import re
from pathlib import Path

import pytest

from sidecar.export.document import NODE_TYPES
from sidecar.export.exporter import ExportResult
from sidecar.export.pictures.formulas import Formulas, FormulaUnsupported
from sidecar.export.schemas import ExportFormat
from sidecar.kernel.catalogue import localise
from tests.app_client import ROOT
from tests.export.conftest import FONTS, FORMULAS, ExportMarkdown
from tests.export.html.test_html import HOSTILE
from tests.export.pictures.samples import png
from tests.export.reading import assert_inert, read_html
from tests.export.reading_pages import read_docx, read_pdf
from tests.export.test_document import EVERYTHING, of_type, parse

FORMATS: tuple[ExportFormat, ...] = ("html", "pdf", "docx")
BUDGETED: tuple[ExportFormat, ...] = ("html", "docx")


def words_of(result: ExportResult) -> str:
    """Return the text of a document without blanks."""
    path = result.file.path
    if path.suffix == ".html":
        document = read_html(path.read_bytes())
        assert_inert(document)
        text = document.one("main").text
    elif path.suffix == ".pdf":
        text = read_pdf(path).text
    else:
        word = read_docx(path)
        text = word.text + word.notes
    return "".join(text.split())


def keys(result: ExportResult) -> list[str]:
    return [warning.key.removeprefix("warning.") for warning in result.warnings]


@pytest.mark.proves("export.exporter.all-types", "export.exporter.same-ast")
@pytest.mark.parametrize("format_", FORMATS)
async def test_every_type_of_node_is_shown_or_told_of(
    export_markdown: ExportMarkdown, format_: ExportFormat
) -> None:
    document = parse(EVERYTHING)
    assert {node.type for node in document.root.walk()} == set(NODE_TYPES)
    result = await export_markdown(EVERYTHING, format_=format_)
    words = words_of(result)
    for node in document.root.walk():
        drawn = ("math_inline", "math_block", "function_plot", "link")
        if node.type in drawn or node.attributes.get("back") or not node.text:
            continue
        if node.text.strip() in ("1", "↩") or node.attributes.get("break"):
            continue
        assert "".join(node.text.split()) in words, node
    (image,) = of_type(document, "image")
    assert "".join(image.attributes["alt"].split()) in words
    assert keys(result) == ["export_image_missing", "MERMAID_RENDER_FAILED"]


@pytest.mark.proves("export.exporter.same-ast", "export.static.contract-only")
def test_exporters_know_neither_markdown_nor_how_plots_are_drawn() -> None:
    folder = ROOT / "sidecar" / "export"
    exporters = set()
    for file in folder.rglob("*.py"):
        imported = {
            node.module or ""
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        # Of plots, the contract for static pictures alone.
        assert {m for m in imported if m.startswith("sidecar.plots")} <= {"sidecar.plots.service"}
        if file.parent.name in ("html", "pdf", "docx"):
            assert not [m for m in imported if "markdown" in m], file
            exporters.add(f"{file.parent.name}/{file.name}")
    assert {"html/exporter.py", "pdf/exporter.py", "docx/exporter.py"} <= exporters


@pytest.mark.proves("export.render.plot-html", "export.render.plot-pdf", "export.render.plot-docx")
async def test_plots_are_drawn_as_each_format_can(export_markdown: ExportMarkdown) -> None:
    text = "```function-plot\nexpressions: [{expression: tan(x), label: 正切}]\n```"
    html = read_html((await export_markdown(text)).file.path.read_bytes())
    (svg,) = html.all("svg")
    assert svg.attributes["class"] == "plot"
    curves = [e for e in svg.all("path") if "curve" in e.classes]
    assert curves[0].attributes["d"].count("M") == 7
    pdf = read_pdf((await export_markdown(text, format_="pdf")).file.path)
    assert pdf.bitmaps == 0
    # The same points, as lines of the page.
    x, y = curves[0].attributes["d"][1:].split("L")[0].split()
    assert f"{float(x):g} {float(y):g} m" in pdf.streams
    assert "正切" in pdf.text
    word = read_docx((await export_markdown(text, format_="docx")).file.path)
    assert len(word.pictures) == 1
    assert any(media.startswith(b"\x89PNG") for media in word.media)


@pytest.mark.proves(
    "export.render.plot-invalid", "plots.parse.keep-source", "export.exporter.no-silent-loss"
)
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_plot_with_a_mistake_keeps_its_source(
    export_markdown: ExportMarkdown, format_: ExportFormat
) -> None:
    text = "text\n\n```function-plot\nsin(x)\ncos(x) + secret\n```"
    result = await export_markdown(text, format_=format_)
    assert "sin(x)cos(x)+secret" in words_of(result)
    (warning,) = localise(result.warnings, "en")
    assert "line 5, column 10" in warning
    assert "“secret”" in warning
    # Warnings outlive a text that wasn't saved, so they don't quote it.
    unsaved = await export_markdown(text, format_=format_, quote=False)
    assert "secret" not in str(localise(unsaved.warnings, "en"))
    assert "line 5" in str(localise(unsaved.warnings, "en"))


async def test_a_plot_that_is_drawn_all_the_same_is_told_of(
    export_markdown: ExportMarkdown,
) -> None:
    result = await export_markdown("```plot\nx\nlog(-1)\n```")
    assert keys(result) == ["export_plot_note"]
    assert "line 3" in localise(result.warnings, "en")[0]


@pytest.mark.proves("export.render.mermaid-no-asset")
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_diagram_without_a_picture_keeps_its_source(
    export_markdown: ExportMarkdown, format_: ExportFormat
) -> None:
    result = await export_markdown(
        "```mermaid\ngraph TD; A-->B\n```\n\n```mermaid\nnonsense\n```", format_=format_
    )
    assert keys(result) == ["MERMAID_RENDER_FAILED", "MERMAID_PARSE_FAILED"]
    words = words_of(result)
    assert "graphTD;A-->B" in words
    assert "nonsense" in words


@pytest.mark.proves("export.render.math-unsupported")
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_formula_that_cannot_be_set_keeps_its_source(
    export_markdown: ExportMarkdown, format_: ExportFormat
) -> None:
    result = await export_markdown(
        "$\\unknowncommand{x}$\n\n$$\n\\frac{a\n$$\n\nand $$\\alsounknown$$ here", format_=format_
    )
    assert keys(result) == ["export_formula_unsupported"] * 3
    words = words_of(result)
    for source in ("\\unknowncommand{x}", "\\frac{a", "\\alsounknown"):
        assert source in words


@pytest.mark.parametrize(
    "source",
    [
        r"\frac{1}{2}",
        r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}",
        r"\int_0^\infty e^{-x^2}\,dx",
        r"\begin{pmatrix}a&b\\c&d\end{pmatrix}",
        r"\begin{align}a&=b\\c&=d\end{align}",
        r"f(x)=\begin{cases}1\\2\end{cases}",
        r"v=\frac{\text{路程}}{\text{时间}}",
        r"\sqrt[3]{x}\le\alpha\ne\mathbb{R}\to\infty",
        r"\hat{y}\vec{v}\overline{AB}\boxed{x}",
        r"\begin{equation}x\label{eq}\end{equation}",
    ],
)
def test_usual_formulas_are_set(source: str) -> None:
    if FONTS.file_for(source) is None:
        pytest.skip("no font here has Chinese characters")
    formula = FORMULAS.typeset(source, display=True)
    assert formula.outlines
    assert 0 < formula.width < 40
    assert 0 < formula.depth < formula.height
    assert all(re.fullmatch(r"[MLQCZ0-9e. -]+", outline.path) for outline in formula.outlines)


@pytest.mark.proves("export.hostile.bounded")
@pytest.mark.parametrize(
    "source",
    [
        "\\sqrt{" * 60 + "x" + "}" * 60,
        "\\frac{1}{" * 60 + "x" + "}" * 60,
        "x^{" * 60 + "}" * 60,
        "{" * 20_000,
        "\\left(" * 5_000,
        "\\begin{pmatrix}" * 500,
        "\\frac" * 3_000,
        "&" * 1_000,
        "<script>alert(1)</script>",
        "&xxe;",
        "]]><x>",
        "\x00",
        "\\href{javascript:alert(1)}{x}",
        "\\includegraphics{/etc/passwd}",
        "\\input{/etc/passwd}",
    ],
    ids=lambda source: source[:12],
)
def test_hostile_formulas_are_bounded(source: str) -> None:
    try:
        formula = Formulas(FORMULAS._fonts).typeset(source, display=True)
    except FormulaUnsupported:
        return
    assert all(re.fullmatch(r"[MLQCZ0-9e. -]+", outline.path) for outline in formula.outlines)
    assert all(re.fullmatch(r"[\w#]+", outline.color or "x") for outline in formula.outlines)


@pytest.mark.proves("export.budget.formula", "export.budget.over-keeps-text")
@pytest.mark.parametrize("format_", BUDGETED)
async def test_long_and_deep_formulas_keep_their_source(
    export_markdown: ExportMarkdown, format_: ExportFormat
) -> None:
    most, more = "x" * 512, "y" * 513
    flat, deep = "\\sqrt{" * 20 + "a" + "}" * 20, "\\sqrt{" * 21 + "b" + "}" * 21
    result = await export_markdown(f"${most}$ ${more}$ ${flat}$ ${deep}$", format_=format_)
    assert keys(result) == ["export_formula_too_complex"] * 2
    words = words_of(result)
    assert more in words
    assert deep in words
    assert most not in words
    assert flat not in words


@pytest.mark.proves("export.budget.resources", "export.budget.over-keeps-text")
@pytest.mark.parametrize("format_", BUDGETED)
async def test_formulas_and_images_have_one_budget(
    export_markdown: ExportMarkdown, tmp_path: Path, format_: ExportFormat
) -> None:
    (tmp_path / "vault" / "a.png").write_bytes(png())
    images = " ".join(["![alt](a.png)"] * 40)
    formulas = " ".join(f"$z_{{{n}}}$" for n in range(26))
    result = await export_markdown(f"{images}\n\n{formulas} ![last](a.png)", format_=format_)
    assert keys(result) == ["export_resource_limit"]
    words = words_of(result)
    assert "z_{23}" not in words
    assert "z_{24}" in words
    assert "z_{25}" in words
    assert "last" in words


@pytest.mark.proves(
    "export.budget.image-file", "export.budget.image-file-unit", "export.budget.over-keeps-text"
)
@pytest.mark.parametrize("format_", BUDGETED)
async def test_large_image_files_are_not_taken(
    export_markdown: ExportMarkdown, tmp_path: Path, format_: ExportFormat
) -> None:
    filler = 2_000_000 - len(png()) - 12
    for name, size in (("most.png", filler), ("more.png", filler + 1)):
        (tmp_path / "vault" / name).write_bytes(png(extra=b"x" * size))
    result = await export_markdown("![first](most.png) ![second](more.png)", format_=format_)
    assert keys(result) == ["export_image_too_large"]
    assert "second" in words_of(result)


@pytest.mark.proves("export.budget.plots", "export.budget.over-keeps-text")
@pytest.mark.parametrize("format_", BUDGETED)
async def test_plots_have_budgets(export_markdown: ExportMarkdown, format_: ExportFormat) -> None:
    plots = "\n\n".join(f"```plot\nx\n# plot {n}\n```" for n in range(66))
    result = await export_markdown(plots, format_=format_)
    assert keys(result) == ["export_plot_limit"]
    words = words_of(result)
    assert "#plot63" not in words
    assert "#plot64" in words
    assert "#plot65" in words

    half = "+".join(["x"] * 2_001)  # 4,001 nodes
    result = await export_markdown(
        f"```plot\n{half}\n```\n\n```plot\n-{half}\n```", format_=format_
    )
    assert keys(result) == ["FUNCTION_PLOT_PARSE_FAILED"]
    assert f"-{half}" in words_of(result)
    curves = "\n".join(["x"] * 17)
    result = await export_markdown(f"```plot\n{curves}\n```", format_=format_)
    assert keys(result) == ["FUNCTION_PLOT_PARSE_FAILED"]


@pytest.mark.proves("export.html.raw-html-safe")
@pytest.mark.parametrize("format_", FORMATS)
async def test_html_in_the_source_is_harmless(
    export_markdown: ExportMarkdown, format_: ExportFormat
) -> None:
    result = await export_markdown(HOSTILE, title="<script>alert(1)</script>", format_=format_)
    words = words_of(result)
    assert "<script>alert(1)</script>" in words
    content = result.file.path.read_bytes()
    if format_ == "pdf":
        drawn = content.decode("latin-1") + read_pdf(content).streams
        for word in ("/JavaScript", "/JS", "/Launch", "/EmbeddedFile", "file://", "javascript:"):
            assert word not in drawn
        assert "https://evil.example" not in drawn
    if format_ == "docx":
        word_file = read_docx(content)
        targets = [
            e.attrib["Target"]
            for name in word_file.names
            if name.endswith(".rels")
            for e in word_file.part(name)
            if e.attrib.get("TargetMode") == "External"
        ]
        assert targets == ["http://x/", "https://ok.example/%22onmouseover=%22x"]
