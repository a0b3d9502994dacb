"""The source of a plot: what it may say, and where its mistakes are."""

import json

import pytest

from sidecar.plots.limits import PlotLimits
from sidecar.plots.source import parse_plot
from tests.plots.reading import picture, render

FULL = """\
version: 1
expressions:
  - expression: sin(x)
    label: 正弦
    color: "#f60"
  - {expression: "x^2", label: parabola, color: Teal}
  - cos(x)
domain: [-6, 6.5]
range: [-2, 2]
axes:
  xLabel: time
  yLabel: height
  grid: false
"""


def places(source: str) -> list[tuple[str, int, int | None]]:
    found = parse_plot(source).diagnostics
    return [(d.message.key, d.position.line, d.position.column) for d in found]


@pytest.mark.proves("plots.parse.fence", "plots.model.expressions", "plots.parse.result")
@pytest.mark.parametrize("form", ["yaml", "json", "tabbed"])
def test_a_source_is_yaml_or_json(form: str) -> None:
    source = FULL
    if form != "yaml":
        import yaml

        source = json.dumps(
            yaml.safe_load(FULL), ensure_ascii=False, indent="\t" if form == "tabbed" else 2
        )
    result = parse_plot(source)
    assert result.diagnostics == ()
    plot = result.plot
    assert plot is not None
    assert [(c.source, c.label, c.color) for c in plot.curves] == [
        ("sin(x)", "正弦", "#f60"),
        ("x^2", "parabola", "teal"),
        ("cos(x)", None, None),
    ]
    assert plot.domain == (-6.0, 6.5)
    assert plot.range == (-2.0, 2.0)
    assert (plot.axes.x_label, plot.axes.y_label, plot.axes.grid) == ("time", "height", False)
    assert result.node_count == plot.nodes == 2 + 3 + 2


@pytest.mark.proves("plots.parse.fence", "plots.model.version-default")
def test_a_source_is_one_expression_a_line_else() -> None:
    plot = parse_plot("# two curves\n\n  sin(x)\ny = x^2\n").plot
    assert plot is not None
    assert [curve.source for curve in plot.curves] == ["sin(x)", "y = x^2"]
    assert plot.domain == (-10.0, 10.0)
    assert plot.range is None


@pytest.mark.proves("plots.model.version", "plots.model.version-default")
def test_another_version_is_no_plot() -> None:
    body = "expressions: [x]"
    assert parse_plot(body).plot
    assert parse_plot(f"version: 1\n{body}").plot
    for version in ("2", "1.5", "abc"):
        result = parse_plot(f"version: {version}\n{body}")
        assert result.plot is None
        assert result.diagnostics[0].code == "FUNCTION_PLOT_PARSE_FAILED"
        assert result.diagnostics[0].position.line == 1


@pytest.mark.proves("plots.model.axes-default")
def test_axes_may_be_left_out() -> None:
    with_grid = picture("expressions: [x]")
    assert with_grid.paths("grid")
    assert not picture("expressions: [x]\naxes: {grid: false}").paths("grid")
    assert picture("expressions: [x]\naxes: {xLabel: a}").paths("grid")


@pytest.mark.proves("plots.model.domain-range-invalid")
@pytest.mark.parametrize("name", ["domain", "range"])
@pytest.mark.parametrize(
    "value",
    [
        "[1, 1]",
        "[2, 1]",
        "[1]",
        "[1, 2, 3]",
        "[]",
        "5",
        "[a, b]",
        '["1", "2"]',
        "[.nan, 1]",
        "[-.inf, .inf]",
        "[-1e400, 1]",
        "[true, false]",
        "{a: 1}",
        "[1, [2]]",
        "[1, 1.0000000000000002]",
    ],
)
def test_an_interval_must_be_two_numbers_in_order(name: str, value: str) -> None:
    source = f"expressions: [x]\n{name}: {value}"
    result = parse_plot(source)
    assert result.plot is None
    (diagnostic,) = result.diagnostics
    assert (diagnostic.severity, diagnostic.code) == ("error", "FUNCTION_PLOT_PARSE_FAILED")
    assert (diagnostic.position.line, diagnostic.position.column) == (2, len(name) + 3)


@pytest.mark.proves("plots.model.color-safe", "plots.endpoint.warning-keeps-result")
@pytest.mark.parametrize(
    "color",
    ["#12345", "url(#x)", "red;fill:blue", "var(--x)", "rgb(1,2,3)", "nocolour", '"><script>'],
)
def test_another_colour_is_the_themes(color: str) -> None:
    source = f"expressions:\n  - expression: x\n    color: '{color}'"
    rendering = render(source)
    (diagnostic,) = rendering.diagnostics
    assert (diagnostic.severity, diagnostic.position.line) == ("warning", 3)
    assert rendering.result is not None
    assert picture(source).paths("curve")[0].attrib["stroke"] == "#0969da"
    for allowed in ("#abc", "#A1B2C3", "tomato"):
        drawn = picture(source.replace(f"'{color}'", f"'{allowed}'"))
        assert drawn.paths("curve")[0].attrib["stroke"] == allowed.lower()


@pytest.mark.proves("plots.endpoint.diagnostic-position", "plots.errors.parse-failed")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("sin(x)\nx^2\n  cos(x) + * 2", ("plot.unexpected", 3, 12)),
        ("sin(x", ("plot.unclosed", 1, 4)),
        ("expressions:\n  - x\n  - x\n  - 2 + foo", ("plot.name", 4, 9)),
        ("expressions:\n  - x\n  - x\n  - {expression: '2 + foo'}", ("plot.name", 4, 23)),
        ('{"expressions": ["x", "x", "2 + foo"]}', ("plot.name", 1, 33)),
        ("expressions:\n  - expression: |\n      2 +\n      foo", ("plot.name", 4, 7)),
        ("expressions: [x]\nversion: 7", ("plot.version", 2, 10)),
        ("version: 1", ("plot.no_expressions", 1, 1)),
        ("expressions: []", ("plot.no_expressions", 1, 14)),
        ("expressions: x", ("plot.not_a_list", 1, 14)),
        ("expressions: [{label: a}]", ("plot.no_expression", 1, 15)),
        ("expressions: [[x]]", ("plot.not_a_mapping", 1, 15)),
        ("expressions: [x]\naxes: 5", ("plot.not_a_mapping", 2, 7)),
        ("expressions: [x]\naxes: {grid: 5}", ("plot.grid", 2, 14)),
        ("expressions: [x]\nexpressions: [y]", ("plot.twice", 2, 1)),
        ("expressions: [x", ("plot.yaml", 1, 16)),
        ("expressions:\n - x\n  bad: y", ("plot.yaml", 3, 6)),
        ("expressions: [{expression: ''}]", ("plot.empty", 1, 28)),
    ],
)
def test_a_mistake_is_told_with_its_place(source: str, expected: tuple[str, int, int]) -> None:
    assert places(source) == [expected]
    assert parse_plot(source).plot is None


def test_unknown_members_are_told_of_and_ignored() -> None:
    source = "expressions: [{expression: x, colour: red}]\ntitle: T\naxes: {legend: top}"
    assert places(source) == [
        ("plot.unknown_member", 2, 1),
        ("plot.unknown_member", 1, 31),
        ("plot.unknown_member", 3, 8),
    ]
    assert parse_plot(source).plot


@pytest.mark.proves("plots.endpoint.empty-source")
@pytest.mark.parametrize("source", ["", "   ", "\n\n", "# only a comment"])
def test_an_empty_source_is_a_mistake(source: str) -> None:
    (diagnostic,) = parse_plot(source).diagnostics
    assert (diagnostic.severity, diagnostic.code) == ("error", "FUNCTION_PLOT_PARSE_FAILED")


@pytest.mark.proves("plots.limits.expressions", "plots.limits.nodes")
def test_a_format_without_limits_has_none() -> None:
    unlimited = PlotLimits(None, None)
    many = "\n".join(["x"] * 40)
    assert parse_plot(many).plot is None
    assert parse_plot(many, unlimited).plot
    long = "+".join(["x"] * 9_000)
    assert parse_plot(long).plot is None
    assert parse_plot(long, unlimited).node_count == 17_999


@pytest.mark.parametrize(
    "source",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nexpressions: [*b, *b]",
        "expressions: &e\n  - *e",
        "expressions: [!!python/object/apply:os.system ['true']]",
        "!!python/object/apply:os.system ['true']: x",
        "a: \x00",
        "expressions: ['\ud800']",
    ],
)
def test_yaml_makes_nothing_but_a_plot(source: str) -> None:
    assert parse_plot(source).plot is None
