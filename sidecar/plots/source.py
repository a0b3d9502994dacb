"""Reads the source of a plot: a mapping in YAML or JSON, or one expression a line."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.kernel.catalogue import Localised
from sidecar.plots.css_colours import css_colour
from sidecar.plots.diagnostics import PARSE_FAILED, Diagnostic, Position, SourceError
from sidecar.plots.expressions import ExpressionError, parse_expression
from sidecar.plots.limits import LIMITS, PlotLimits
from sidecar.plots.model import DEFAULT_DOMAIN, VERSION, Axes, Curve, FunctionPlot, ParseResult

Node = Any  # A node of PyYAML, whose types lack half of what nodes have.

MAX_LABEL: Final = 200

_MAPPING: Final = re.compile(r"(?:\s*#[^\n]*\n|\s*\n)*\s*(?:\{|---|[\"']?[A-Za-z_]\w*[\"']?\s*:)")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_SHOWN: Final = 40
_WIDEST: Final = 1e150


def parse_plot(source: str, limits: PlotLimits = LIMITS) -> ParseResult:
    """Return what *source* says. Never raises for what is written in it."""
    reader = _SourceReader(source, limits)
    try:
        plot = reader.read()
    except SourceError as error:
        return ParseResult(None, (*reader.warnings, error.diagnostic), reader.nodes)
    return ParseResult(plot, tuple(reader.warnings), reader.nodes)


@dataclass(slots=True)
class _Place:
    """Where in the source a text begins, and how to find a place within it."""

    position: Position
    within: Callable[[int], Position]


@dataclass(slots=True)
class _SourceReader:
    source: str
    limits: PlotLimits
    warnings: list[Diagnostic] = field(default_factory=list)
    nodes: int = 0

    def read(self) -> FunctionPlot:
        if not self.source.strip():
            raise SourceError(Position(1, 1), "no_source")
        if _MAPPING.match(self.source):
            return self._plot(_compose(self.source))
        return self._lines()

    def _lines(self) -> FunctionPlot:
        curves: list[Curve] = []
        for number, line in enumerate(self.source.splitlines(), start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            start = len(line) - len(line.lstrip())
            place = _Place(Position(number, start + 1), _on_line(number, start))
            curves.append(self._curve(text, place, len(curves)))
        if not curves:
            raise SourceError(Position(1, 1), "no_source")
        return FunctionPlot(tuple(curves))

    def _curve(
        self,
        text: str,
        place: _Place,
        index: int,
        label: str | None = None,
        color: str | None = None,
    ) -> Curve:
        most = self.limits.expressions
        if most is not None and index >= most:
            raise SourceError(place.position, "too_many_expressions", limit=most)
        try:
            expression = parse_expression(text)
        except ExpressionError as error:
            raise SourceError(
                place.within(error.offset), error.key, error.code, **error.params
            ) from error
        self.nodes += expression.nodes
        if self.limits.nodes is not None and self.nodes > self.limits.nodes:
            raise SourceError(place.position, "too_many_nodes", limit=self.limits.nodes)
        return Curve(text, expression, place.position, label, color)

    # -- the mapping ---------------------------------------------------------------------------

    def _plot(self, node: Node) -> FunctionPlot:
        known = ("version", "expressions", "domain", "range", "axes")
        members = self._members(node, known)
        if (version := members.get("version")) is not None and self._text(version) != str(VERSION):
            raise SourceError(_position(version), "version", supported=VERSION)
        if (given := members.get("expressions")) is None:
            raise SourceError(_position(node), "no_expressions")
        items = self._items(given)
        if not items:
            raise SourceError(_position(given), "no_expressions")
        curves = tuple(self._curve_of(item, index) for index, item in enumerate(items))
        domain, shown = members.get("domain"), members.get("range")
        return FunctionPlot(
            curves,
            DEFAULT_DOMAIN if _is_absent(domain) else self._interval(domain, "domain"),
            None if _is_absent(shown) else self._interval(shown, "range"),
            self._axes(members.get("axes")),
        )

    def _curve_of(self, node: Node, index: int) -> Curve:
        if node.id == "scalar":
            return self._curve(node.value, self._place(node), index)
        members = self._members(node, ("expression", "label", "color"))
        if (expression := members.get("expression")) is None:
            raise SourceError(_position(node), "no_expression")
        text = self._text(expression)
        label, color = members.get("label"), None
        if not _is_absent(given := members.get("color")):
            color = css_colour(self._text(given).strip())
            if color is None:
                self._warn(given, "color", found=self._text(given)[:_SHOWN])
        words = None if _is_absent(label) else self._label(label)
        return self._curve(text, self._place(expression), index, words, color)

    def _axes(self, node: Node) -> Axes:
        if node is None or _is_absent(node):
            return Axes()
        members = self._members(node, ("xLabel", "yLabel", "grid"))
        labels = [
            None if _is_absent(label := members.get(name)) else self._label(label)
            for name in ("xLabel", "yLabel")
        ]
        grid = True
        if (given := members.get("grid")) is not None:
            words = self._text(given).lower()
            if given.tag != "tag:yaml.org,2002:bool":
                raise SourceError(_position(given), "grid")
            grid = words in ("true", "yes", "on")
        return Axes(labels[0], labels[1], grid)

    def _interval(self, node: Node, name: str) -> tuple[float, float]:
        items = self._items(node)
        values = [_number(item) for item in items]
        if len(values) != 2 or None in values:
            raise SourceError(_position(node), "not_two_numbers", name=name)
        low, high = values
        assert low is not None
        assert high is not None
        if not (abs(low) <= _WIDEST and abs(high) <= _WIDEST):
            raise SourceError(_position(node), "not_finite", name=name)
        if low >= high or low + (high - low) / 4096 == low or high - (high - low) / 4096 == high:
            raise SourceError(_position(node), "reversed", name=name)
        return low, high

    # -- nodes ---------------------------------------------------------------------------------

    def _members(self, node: Node, known: tuple[str, ...]) -> dict[str, Node]:
        if node.id != "mapping":
            raise SourceError(_position(node), "not_a_mapping", known=", ".join(known))
        members: dict[str, Node] = {}
        for key, value in node.value:
            name = self._text(key)
            if name in members:
                raise SourceError(_position(key), "twice", name=name[:_SHOWN])
            if name not in known:
                self._warn(key, "unknown_member", name=name[:_SHOWN], known=", ".join(known))
            members[name] = value
        return members

    def _items(self, node: Node) -> list[Node]:
        if node.id != "sequence":
            raise SourceError(_position(node), "not_a_list")
        items: list[Node] = node.value
        return items

    def _text(self, node: Node) -> str:
        if node.id != "scalar":
            raise SourceError(_position(node), "not_a_text")
        value: str = node.value
        return value

    def _label(self, node: Node) -> str:
        words = " ".join(self._text(node).split())
        if len(words) > MAX_LABEL:
            self._warn(node, "label_cut", limit=MAX_LABEL)
        return words[:MAX_LABEL]

    def _place(self, node: Node) -> _Place:
        return _Place(_position(node), lambda offset: _within(self.source, node, offset))

    def _warn(self, node: Node, key: str, **params: object) -> None:
        message = Localised(f"plot.{key}", params)
        if len(self.warnings) < 50:
            self.warnings.append(Diagnostic("warning", PARSE_FAILED, message, _position(node)))


def _compose(source: str) -> Node:
    """Return the nodes of a YAML text, which JSON is, too; nothing is made of them."""
    import yaml  # noqa: PLC0415 - not needed before ready

    # JSON may be indented with tabs, YAML not; a blank for a tab leaves columns as they are.
    try:
        node = yaml.compose(source.replace("\t", " "), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        raise SourceError(where, "yaml", problem=(error.problem or "")[:100]) from error
    except yaml.YAMLError as error:
        raise SourceError(Position(1, 1), "yaml") from error
    except RecursionError as error:
        raise SourceError(Position(1, 1), "too_deep_mapping") from error
    if node is None:
        raise SourceError(Position(1, 1), "no_source")
    return node


def _position(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _is_absent(node: Node) -> bool:
    return node is None or node.tag == "tag:yaml.org,2002:null"


def _number(node: Node) -> float | None:
    if node.id != "scalar" or node.style is not None or not _NUMBER.fullmatch(node.value):
        is_float = node.id == "scalar" and node.tag == "tag:yaml.org,2002:float"
        return math.inf if is_float else None  # .inf and .nan are numbers, though no finite ones
    return float(node.value)


def _on_line(line: int, start: int) -> Callable[[int], Position]:
    return lambda offset: Position(line, start + offset + 1)


def _within(source: str, node: Node, offset: int) -> Position:
    """Return where character *offset* of a scalar stands, past its quotes, escapes and indentation."""
    start, end = node.start_mark.index, node.end_mark.index
    position = start
    for wanted in node.value[:offset]:
        found = source.find(wanted, position, end)
        # A blank may be a line break that was folded, and an escape has no character to be found.
        if found < 0:
            break
        position = found + 1
    if offset < len(node.value):
        found = source.find(node.value[offset], position, end)
        position = found if found >= 0 else position
    line = source.count("\n", 0, position)
    return Position(line + 1, position - (source.rfind("\n", 0, position) + 1) + 1)
