"""The language of expressions."""

import ast
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.plots.expressions import Expression, ExpressionError, parse_expression
from sidecar.plots.functions import FUNCTIONS
from tests.app_client import ROOT
from tests.plots.reading import render

PLOTS = ROOT / "sidecar" / "plots"


def value(text: str, x: float = 0.0) -> float:
    return parse_expression(text).evaluate([x])[0]


@pytest.mark.proves("plots.expr.allow-list")
@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("1 + 2 * 3", 0, 7),
        ("(1 + 2) * 3", 0, 9),
        ("10 - 4 - 3", 0, 3),
        ("12 / 3 / 2", 0, 2),
        ("2 ^ 3 ^ 2", 0, 512),
        ("-2 ^ 2", 0, -4),
        ("(-2) ^ 2", 0, 4),
        ("2 ^ -1", 0, 0.5),
        ("2 ^ -x ^ 2", 3, 2**-9),
        ("--x", 3, 3),
        ("2 * -x", 3, -6),
        ("- - 2 * + 3", 0, 6),
        (".5 + 1. + 1e2 + 2.5E-1", 0, 101.75),
        ("pi", 0, math.pi),
        ("e + tau", 0, math.e + math.tau),
        ("x", 4, 4),
        ("3－x".replace("－", "−"), 1, 2),
        ("（x + 1）× 2 ÷ 4", 1, 1),
        ("π", 0, math.pi),
    ],
)
def test_operators_bind_as_in_mathematics(text: str, x: float, expected: float) -> None:
    assert value(text, x) == pytest.approx(expected)


@pytest.mark.proves("plots.expr.functions")
@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("2x", 3, 6),
        ("2sin(x)", 1, 2 * math.sin(1)),
        ("x sin(x)", 2, 2 * math.sin(2)),
        ("(x+1)(x-1)", 3, 8),
        ("2(x+1)", 3, 8),
        ("2x^2", 3, 18),
        ("2pi x", 1, math.tau),
        ("2e", 0, 2 * math.e),
        ("2e-x", 1, 2 * math.e - 1),
        ("y = x^2", 3, 9),
        ("f(x) = x^2", 3, 9),
        ("log(e) + ln(e) + log10(100) + log2(8)", 0, 7),
        ("sqrt(16) + cbrt(-8) + abs(-3)", 0, 5),
        ("floor(-1.5) + ceil(1.2) + round(2.5) + round(-2.5)", 0, 1),
        ("sign(-3) + sign(0) + sign(2)", 0, 0),
        ("min(3, 1, 2) + max(3, 1, 2)", 0, 4),
        ("mod(7, 3) + mod(-1, 3)", 0, 3),
        ("asin(1) + acos(1) + atan(0)", 0, math.pi / 2),
        ("sinh(1) + cosh(1) + tanh(0) + exp(0)", 0, math.e + 1),
        ("sin(0) + cos(0) + tan(0)", 0, 1),
    ],
)
def test_functions_and_products_without_a_sign(text: str, x: float, expected: float) -> None:
    assert value(text, x) == pytest.approx(expected)


def test_every_function_of_the_table_can_be_called() -> None:
    for name, function in FUNCTIONS.items():
        arguments = ", ".join(["0.5"] * function.least)
        assert math.isfinite(value(f"{name}({arguments})")), name


@pytest.mark.proves("plots.expr.no-attribute-access", "plots.expr.unsafe-code")
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("x.real", 1),
        ("sin.__class__", 3),
        ("x[0]", 1),
        ("x = 5", 2),
        ("x == 5", 2),
        ("lambda: 1", 0),
        ("lambda x", 0),
        ("'text'", 0),
        ('"text"', 0),
        ("import(x)", 0),
        ("__import__(x)", 0),
        ("open(x)", 0),
        ("eval(x)", 0),
        ("print(x)", 0),
        ("x; x", 1),
        ("{x}", 0),
        ("y", 0),
        ("sinx", 0),
        ("1 + foo", 4),
        ("globals()", 0),
    ],
)
def test_what_is_not_allowed_is_refused(text: str, offset: int) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse_expression(text)
    assert refused.value.code == "FUNCTION_PLOT_EXPRESSION_UNSAFE"
    assert refused.value.offset == offset
    diagnostics = render(f"expressions:\n  - |-\n    {text}").diagnostics
    assert [d.code for d in diagnostics] == ["FUNCTION_PLOT_EXPRESSION_UNSAFE"]
    assert (diagnostics[0].position.line, diagnostics[0].position.column) == (3, 5 + offset)
    assert diagnostics[0].severity == "error"


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("sin(", 4),
        ("(x", 0),
        ("x)", 1),
        ("x +", 3),
        ("* x", 0),
        ("1 2", 2),
        ("x x 3", 4),
        ("sin x", 4),
        ("sin", 3),
        ("()", 1),
        ("sin()", 4),
        ("mod(x)", 3),
        ("sin(x, x)", 3),
        ("(x, x)", 2),
        ("x, x", 1),
        ("min(x,)", 6),
        ("x ^ ^ x", 4),
        ("x ** 2", 3),
        ("x % 2", 2),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, offset: int) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse_expression(text)
    assert refused.value.code == "FUNCTION_PLOT_PARSE_FAILED"
    assert refused.value.offset == offset


@pytest.mark.proves("plots.expr.no-eval", "plots.expr.no-io")
def test_the_source_of_the_language_runs_no_text() -> None:
    forbidden = {"eval", "exec", "compile", "__import__", "open", "FunctionType", "getattr"}
    for file in PLOTS.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, f"{file.name}:{node.lineno}"
    # What carries an expression out knows nothing but mathematics.
    for name in ("expressions.py", "functions.py"):
        tree = ast.parse((PLOTS / name).read_text(encoding="utf-8"))
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert imported <= {"math", "operator", "re"}


@pytest.mark.proves("plots.expr.no-io")
def test_a_step_can_only_be_a_function_of_the_table() -> None:
    steps = parse_expression("2x + sin(x)^2 / -mod(x, 3)").steps
    calls = {step.call for step in steps if step.call is not None}
    known = {function.call for function in FUNCTIONS.values()}
    assert all(
        call in known or call.__module__ in ("_operator", "sidecar.plots.functions")
        for call in calls
    )


@pytest.mark.proves("plots.expr.numeric-blowup")
@pytest.mark.parametrize(
    "text",
    [
        "9^9^9^9",
        "1/0",
        "1/(x-x)",
        "mod(x, 0)",
        "log(-1)",
        "log(0)",
        "sqrt(-1)",
        "(-8)^(1/3)",
        "0^-1",
        "exp(1000)",
        "sinh(1000) - cosh(1000)",
        "asin(2)",
        "exp(exp(exp(10)))",
        "sin(exp(1000))",
        "floor(exp(1000))",
        "tan(1e308 * 1e308)",
        "mod(1e308 * 10, 3)",
        "max(1/0, 1)",
    ],
)
def test_values_that_are_none_are_gaps(text: str) -> None:
    assert not math.isfinite(value(text, 1.0))
    rendering = render(text)
    assert rendering.result is not None
    assert [d.severity for d in rendering.diagnostics] == ["warning"]


@pytest.mark.proves("plots.expr.deep-nesting")
@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "(" * 9_999 + "x" + ")" * 9_999,
        "-" * 10_000 + "x",
        "sin(" * 5_000 + "x",
        "-(" * 5_000 + "x",
        "x" + "^x" * 5_000,
        "[" * 10_000,
        "{a: " * 4_000,
        "expressions: " + "[" * 10_000,
        "expressions: " + "- " * 9_000,
    ],
    ids=lambda text: text[:8],
)
def test_deep_nesting_is_a_diagnostic(text: str) -> None:
    rendering = render(text)
    assert rendering.result is None
    assert [d.severity for d in rendering.diagnostics] == ["error"]


def test_long_sums_are_no_deep_nesting() -> None:
    expression = parse_expression("+".join(["x"] * 4_000))
    assert expression.nodes == 7_999
    assert expression.evaluate([1.0, 2.0]) == [4_000.0, 8_000.0]


@given(st.text(alphabet="x0123456789.e+-*/^(), sincogtanlpqrmdπ[]='\n", max_size=60))
def test_no_text_is_too_strange(text: str) -> None:
    outcome = parsed(text)
    if isinstance(outcome, ExpressionError):
        assert 0 <= outcome.offset <= len(text)
    else:
        assert len(outcome.evaluate([-1.0, 0.0, 0.5, 1e300])) == 4


def parsed(text: str) -> Expression | ExpressionError:
    try:
        return parse_expression(text)
    except ExpressionError as error:
        return error
