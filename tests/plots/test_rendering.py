"""What is drawn."""

import dataclasses
import io
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from sidecar.kernel.errors import ProjectError
from sidecar.plots import drawing, static_render
from sidecar.plots.geometry import make_geometry
from sidecar.plots.mermaid import diagram_problem
from sidecar.plots.png import SCALE, draw_png
from sidecar.plots.sampling import MOST_POINTS
from sidecar.plots.source import parse_plot
from sidecar.plots.static_render import StaticRenderer, StaticRenderRequest, source_hash
from sidecar.plots.svg_safety import sanitised_svg
from sidecar.plots.themes import CHART_THEMES
from tests.plots.reading import SVG, picture, read_svg, render

Piece = list[tuple[float, float]]


def spans(source: str) -> list[tuple[float, float]]:
    """Return from where to where in x each piece of the first curve goes."""
    drawn = picture(source)
    found = []
    for piece in drawn.pieces():
        xs = [drawn.x_of(x) for x, _ in piece]
        assert xs == sorted(xs)
        found.append((xs[0], xs[-1]))
    return found


@pytest.mark.proves("plots.render.breaks")
def test_a_curve_is_not_joined_across_its_poles() -> None:
    tangent = spans("tan(x)")
    poles = [math.pi / 2 + n * math.pi for n in range(-4, 4) if abs(math.pi / 2 + n * math.pi) < 10]
    assert len(tangent) == len(poles) + 1
    for pole, (left, right) in zip(poles, pairwise(tangent), strict=True):
        assert left[1] < pole < right[0]
    for source in ("1/x", "1/x^2", "1/x^3", "log(abs(x))", "x/abs(x)", "2^(1/x)"):
        (left, right) = spans(source)
        assert left[1] <= 0.01, source
        assert right[0] >= -0.01, source
    # Fast oscillation with poles, which an even grid would take for a slow curve.
    assert len(spans("tan(50x)")) > 200


@pytest.mark.proves("plots.render.breaks")
def test_a_curve_is_not_joined_across_jumps_and_gaps() -> None:
    steps = spans("floor(x)")
    assert len(steps) == 20 or len(steps) == 21  # the last step is the point x = 10 alone
    for step, (left, right) in enumerate(steps[:20], start=-10):
        assert left == pytest.approx(step, abs=0.05)
        assert right == pytest.approx(step + 1, abs=0.05)
    (root,) = spans("sqrt(x)")
    assert root == pytest.approx((0, 10), abs=0.01)
    (half_circle,) = spans("sqrt(9 - x^2)")
    assert half_circle == pytest.approx((-3, 3), abs=0.01)
    outer = spans("sqrt(x^2 - 4)")
    assert (outer[0][1], outer[1][0]) == pytest.approx((-2, 2), abs=0.01)


@pytest.mark.proves("plots.render.breaks")
@pytest.mark.parametrize(
    "source",
    ["x^3", "exp(x)", "atan(1000000x)", "tanh(100x)", "abs(x)", "cbrt(x)", "sin(20x)", "x^9"],
)
def test_a_steep_curve_is_whole(source: str) -> None:
    assert len(spans(source)) == 1


def test_ends_of_a_curve_lie_on_it() -> None:
    drawn = picture("expressions: [sqrt(x)]\nrange: [-1, 4]")
    _, top, _, bottom = drawn.frame
    ((x, y), *_) = drawn.pieces()[0]
    assert drawn.x_of(x) == pytest.approx(0, abs=0.02)
    assert y == pytest.approx(top + (bottom - top) * 4 / 5, abs=0.5)


@pytest.mark.proves("plots.model.domain-range")
def test_domain_and_range_limit_the_axes() -> None:
    drawn = picture("expressions: [x]\ndomain: [2, 4]\nrange: [0, 8]")
    left, top, right, bottom = drawn.frame
    ((start, *_, end),) = drawn.pieces()
    assert start == pytest.approx((left, bottom - (bottom - top) * 2 / 8), abs=0.02)
    assert end == pytest.approx((right, bottom - (bottom - top) * 4 / 8), abs=0.02)
    assert {"2.0", "4.0", "0", "8"} <= set(drawn.texts)
    clipped = picture("expressions: [x]\nrange: [-1, 1]")
    ys = [y for piece in clipped.pieces() for _, y in piece]
    assert min(ys) == pytest.approx(clipped.frame[1], abs=0.02)
    assert max(ys) == pytest.approx(clipped.frame[3], abs=0.02)


@pytest.mark.proves("plots.model.domain-range-default")
def test_without_them_x_is_ten_to_each_side_and_y_fits() -> None:
    drawn = picture("2x")
    ((start, *_, end),) = drawn.pieces()
    assert (drawn.x_of(start[0]), drawn.x_of(end[0])) == pytest.approx((-10, 10), abs=0.01)
    assert {"-20", "20", "-10", "10"} <= set(drawn.texts)
    # All of a whole curve is seen, and a pole doesn't flatten the rest.
    for source, least, most in (("tan(x)", 3, 40), ("1/x", 0.8, 20), ("x^3", 1000, 1200)):
        plot = parse_plot(source).plot
        assert plot is not None
        texts = [float(t) for t in picture(source).texts[10:] if re.fullmatch(r"-?[\d.e]+", t)]
        assert least * 0.8 <= max(texts) <= most, source
    assert picture("5").texts.count("5") == 1


@pytest.mark.proves("plots.model.axes", "plots.model.expressions")
def test_labels_are_shown() -> None:
    drawn = picture(
        "expressions: [{expression: x, label: 直线}, x^2]\naxes: {xLabel: 时间, yLabel: speed}"
    )
    assert {"直线", "x^2", "时间", "speed"} <= set(drawn.texts)
    assert len(drawn.paths("swatch")) == 2
    assert [p.attrib["stroke"] for p in drawn.paths("swatch")] == [
        p.attrib["stroke"] for p in drawn.paths("curve")
    ]
    assert not picture("x").paths("swatch")
    long = picture("expressions: [{expression: x, label: " + "很长" * 60 + "}]")
    (title,) = [e.text for e in long.root.iter(f"{SVG}title")]
    assert title == "很长" * 60


@pytest.mark.proves("plots.render.label-escaped", "plots.endpoint.svg")
def test_markup_in_a_label_is_text() -> None:
    evil = '</text><script>alert(1)</script><a href="javascript:x" onclick="x">&amp;'
    source = f"expressions:\n  - expression: x\n    label: '{evil}'\naxes:\n  xLabel: '{evil}'"
    drawn = picture(source)
    assert [t for t in drawn.texts if t == evil] == [evil] * 2
    tags = {element.tag.removeprefix(SVG) for element in drawn.root.iter()}
    assert tags <= {"svg", "rect", "path", "g", "text", "title"}
    for element in drawn.root.iter():
        assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
        assert not [v for n, v in element.attrib.items() if "url(" in v and n != "aria-label"]


@pytest.mark.proves("plots.render.deterministic")
def test_the_same_source_is_the_same_picture() -> None:
    for source in ("tan(x)\nsin(1/x)\nfloor(x)", "sin(1000000x)"):
        assert render(source) == render(source)


@pytest.mark.proves("plots.limits.sampling")
@pytest.mark.parametrize(
    "source",
    [
        "sin(1/x)",
        "sin(1000000*x)",
        "tan(1000000x)",
        "1000000x - floor(1000000x)",
        "mod(x, 0.00001)",
        "sqrt(sin(1000000x))",
        "exp(sin(100000x) * 100)",
        "\n".join(f"sin({n}00000x)" for n in range(1, 17)),
        "+".join(["sin(x)"] * 2_600),
    ],
    ids=lambda source: source[:12],
)
def test_sampling_is_bounded(source: str) -> None:
    drawn = picture(source)
    for curve in range(len(drawn.paths("curve"))):
        points = sum(map(len, drawn.pieces(curve)))
        assert points < 4 * MOST_POINTS


@pytest.mark.proves("plots.errors.all-points-undefined")
def test_a_curve_without_a_point_is_an_empty_axis() -> None:
    rendering = render("x\nsqrt(-1 - x^2)")
    (diagnostic,) = rendering.diagnostics
    assert (diagnostic.severity, diagnostic.position.line) == ("warning", 2)
    assert diagnostic.code == "FUNCTION_PLOT_RENDER_FAILED"
    assert rendering.result is not None
    assert read_svg(rendering.result.content).paths("curve")[1].attrib["d"] == ""
    alone = picture("log(-1)")
    assert alone.paths("axis")
    assert alone.paths("grid")


@pytest.mark.proves("plots.theme.tokens")
def test_a_table_of_tokens_gives_the_colours() -> None:
    assert set(CHART_THEMES) == {"light", "dark", "sepia", "forest", "ocean", "high-contrast"}
    for colours in CHART_THEMES.values():
        rendering = render("\n".join(f"x + {n}" for n in range(8)), colours=colours)
        assert rendering.result is not None
        drawn = read_svg(rendering.result.content)
        given = dict(part.split(":") for part in drawn.root.attrib["style"].split(";"))
        assert given == colours.tokens()
        assert {"--chart-background", "--chart-text", "--chart-axis", "--chart-grid"} < given.keys()
        used = [path.attrib["stroke"] for path in drawn.paths("curve")]
        assert used == [given[f"--chart-series-{n}"] for n in range(1, 9)]
        assert len(set(used)) == 8


@pytest.mark.proves("plots.interpreter.shared")
def test_svg_and_png_show_the_same_curve() -> None:
    plot = parse_plot("x^3 - 20x\ntan(x)").plot
    assert plot is not None
    geometry = make_geometry(plot)
    colours = dataclasses.replace(CHART_THEMES["light"], series=("#ff0000", "#00ff00"))
    png = draw_png(geometry, colours, lambda _: None)
    rendering = render("x^3 - 20x\ntan(x)", colours=colours)
    assert rendering.result is not None
    drawn = read_svg(rendering.result.content)
    image = Image.open(io.BytesIO(png)).convert("RGB")
    assert image.size == (geometry.width * SCALE, geometry.height * SCALE)
    for number, wanted in enumerate(((255, 0, 0), (0, 255, 0))):
        for piece in drawn.pieces(number):
            for x, y in piece[:: max(1, len(piece) // 40)]:
                near: list[Any] = [
                    image.getpixel((min(image.width - 1, round(x * 2) + i), round(y * 2) + j))
                    for i in (-1, 0, 1)
                    for j in (-1, 0, 1)
                ]
                # The other curve may lie over it where they cross.
                assert any(
                    all(abs(a - b) < 90 for a, b in zip(pixel, wanted, strict=True))
                    or pixel[1] > 150
                    for pixel in near
                ), (x, y, near)


@pytest.mark.proves("plots.errors.render-failed")
def test_a_failure_while_drawing_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> str:
        raise ValueError("library text /home/user")

    monkeypatch.setattr(drawing, "draw_svg", failing)
    rendering = render("x")
    assert rendering.result is None
    (diagnostic,) = rendering.diagnostics
    assert (diagnostic.severity, diagnostic.code) == ("error", "FUNCTION_PLOT_RENDER_FAILED")
    assert "library" not in repr(diagnostic)


@pytest.mark.proves("export.static.request", "export.static.result", "plots.render.static")
def test_a_static_picture_is_asked_for_and_given() -> None:
    names = [field.name for field in dataclasses.fields(StaticRenderRequest)]
    assert names[:6] == ["kind", "source", "source_hash", "theme", "width", "height"]
    light = render("x", theme="light").result
    dark = render("x", theme="dark").result
    wide = render("x", width=900, height=300).result
    as_png = render("x", mime_type="image/png").result
    assert light
    assert dark
    assert wide
    assert as_png
    assert (light.mime_type, light.width, light.height, light.warnings) == (
        "image/svg+xml",
        640,
        400,
        (),
    )
    assert isinstance(light.content, str)
    assert light.content != dark.content
    assert (wide.width, wide.height) == (900, 300)
    assert as_png.mime_type == "image/png"
    assert isinstance(as_png.content, bytes)
    assert as_png.content.startswith(b"\x89PNG")


@pytest.mark.proves("export.static.cache-key")
def test_a_picture_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []

    def counted(*arguments: Any) -> Any:
        drawn.append(arguments)
        return make_geometry(*arguments)

    monkeypatch.setattr(drawing, "make_geometry", counted)
    renderer = StaticRenderer()
    request = StaticRenderRequest("function_plot", "x", source_hash("x"))
    assert renderer.render(request) is renderer.render(request)
    renderer.render(dataclasses.replace(request, source="x ", source_hash=source_hash("x ")))
    assert len(drawn) == 1
    renderer.render(dataclasses.replace(request, theme="dark"))
    assert len(drawn) == 2
    renderer.render(dataclasses.replace(request, source="2x", source_hash=source_hash("2x")))
    assert len(drawn) == 3
    monkeypatch.setattr(static_render, "RENDERER_VERSION", 2)
    renderer.render(request)
    assert len(drawn) == 4


@pytest.mark.proves("plots.errors.mermaid-no-renderer")
def test_a_diagram_is_never_claimed_to_be_drawn() -> None:
    source = "graph TD; A-->B"
    rendering = StaticRenderer().render(StaticRenderRequest("mermaid", source, source_hash(source)))
    assert rendering.result is None
    (diagnostic,) = rendering.diagnostics
    assert (diagnostic.severity, diagnostic.code) == ("warning", "MERMAID_RENDER_FAILED")


@pytest.mark.proves("plots.errors.mermaid-parse-failed")
def test_a_diagram_of_no_known_type_is_told_of() -> None:
    for source in ("", "  \n", "%% only a comment", "hello", "graphic TD", "---\ntitle: x\n---\n"):
        assert diagram_problem(source) == "MERMAID_PARSE_FAILED", source
    for source in (
        "graph TD",
        "flowchart LR\n A-->B",
        "sequenceDiagram\n",
        "%%{init: {}}%%\n%% note\npie title x",
        "---\ntitle: x\n---\nstateDiagram-v2",
        "gitGraph:",
        "xychart-beta",
    ):
        assert diagram_problem(source) == "MERMAID_RENDER_FAILED", source


ACTIVE = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10"
 height="10" onload="alert(1)" style="background:url(http://evil)">
<script>alert(1)</script><style>@import url(http://evil)</style>
<a xlink:href="javascript:alert(1)"><text>linked</text></a>
<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><iframe src="http://evil"/></body></foreignObject>
<image href="http://evil/x.png"/><use href="http://evil/x.svg#a"/>
<rect width="5" height="5" fill="url(http://evil)" onclick="x()"/><animate attributeName="href" to="javascript:x"/>
<g clip-path="url(#kept)"><text x="1" y="2">words</text> tail</g>
<path d="M0 0L1 1" fill="url(#g)" filter="url(http://evil)"/></svg>"""


@pytest.mark.proves("export.static.svg-sanitised")
def test_an_svg_is_made_harmless() -> None:
    clean = sanitised_svg(ACTIVE)
    for word in (
        "script",
        "onload",
        "onclick",
        "javascript",
        "evil",
        "foreignObject",
        "iframe",
        "href",
        "style",
    ):
        assert word not in clean
    for word in ("words", "tail", 'clip-path="url(#kept)"', 'd="M0 0L1 1"', 'fill="url(#g)"'):
        assert word in clean
    ours = render("x^2")
    assert ours.result is not None
    assert isinstance(ours.result.content, str)
    again = sanitised_svg(ours.result.content)
    assert ET.canonicalize(again) == ET.canonicalize(ours.result.content)


@pytest.mark.proves("plots.errors.mermaid-svg-unsafe")
@pytest.mark.parametrize(
    "svg",
    [
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        '<!DOCTYPE svg SYSTEM "file:///etc/passwd"><svg xmlns="http://www.w3.org/2000/svg"/>',
        '<html xmlns="http://www.w3.org/1999/xhtml"><script>1</script></html>',
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="url(javascript:alert(1))"/></svg>',
        "<svg",
        "no svg",
        "",
    ],
)
def test_what_can_not_be_made_harmless_is_refused(svg: str) -> None:
    with pytest.raises(ProjectError) as refused:
        sanitised_svg(svg)
    assert refused.value.code == "MERMAID_SVG_UNSAFE"


def test_words_are_drawn_with_the_font_that_has_them(tmp_path: Path) -> None:
    plot = parse_plot("expressions: [{expression: x, label: 直线}]\naxes: {yLabel: y}").plot
    assert plot is not None
    asked: list[str] = []
    png = draw_png(make_geometry(plot), CHART_THEMES["dark"], asked.append)
    assert "直线" in asked
    assert png.startswith(b"\x89PNG")
