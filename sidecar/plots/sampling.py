"""Samples a curve: more points where it bends, none joined across a pole, a jump or a gap.

Points are added between two neighbours where the middle lies off the line that joins them, level by
level, until the picture would not change or the points are used up. Where two neighbours still lie
far apart, the interval is halved towards the larger step: across a jump or a pole the step stays or
grows however narrow the interval becomes, on a steep but whole curve it shrinks.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sidecar.plots.expressions import Expression

# Values of nodes that may be computed for one plot: some tenths of a second.
EVALUATIONS: Final = 800_000
MOST_POINTS: Final = 4_000
FEWEST_POINTS: Final = 100
BASE_POINTS: Final = 480
_LEVELS: Final = 7
_TOLERANCE: Final = 0.3  # pixels
_STEP: Final = 12.0  # pixels between neighbours that need a look
_HALVINGS: Final = 44
_MOST_SUSPECTS: Final = 1_000
_MOST_EDGES: Final = 400  # times the nodes of the expression

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of the plane, and how many pixels it takes."""

    domain: tuple[float, float]
    range: tuple[float, float]
    width: float
    height: float


def base_grid(domain: tuple[float, float], points: int) -> list[float]:
    """Return ascending values from one end of *domain* to the other.

    They aren't quite evenly spaced: a fast oscillation must not fall into step with them and look slow.
    """
    low, high = domain
    step = (high - low) / (points - 1)
    # Multiples of the golden ratio, modulo 1, never repeat and never cluster.
    inner = (
        index + 0.7 * ((index * 0.6180339887498949) % 1 - 0.5) for index in range(1, points - 1)
    )
    return [low, *(low + step * place for place in inner), high]


def base_values(expression: Expression, domain: tuple[float, float], points: int) -> list[float]:
    """Return values of an expression over *domain*, those at the ends of gaps among them."""
    xs = base_grid(domain, points)
    ys = expression.evaluate(xs)
    edges: list[float] = []
    for (x, y), (next_x, next_y) in pairwise(zip(xs, ys, strict=True)):
        if (
            math.isfinite(y) != math.isfinite(next_y)
            and len(edges) * expression.nodes < _MOST_EDGES
        ):
            inside, outside = (x, next_x) if math.isfinite(y) else (next_x, x)
            edges += [value for _, value in _edge(expression, inside, outside)]
    return ys + edges


def budget(expression: Expression, all_nodes: int) -> int:
    """Return how many points an expression may take, as one of those with *all_nodes* nodes."""
    share = EVALUATIONS // max(all_nodes, expression.nodes, 1)
    return max(FEWEST_POINTS, min(MOST_POINTS, share))


def sample(expression: Expression, view: View, points: int) -> list[Points]:
    """Return the pieces of a curve, each a list of (x, y) in ascending x; *points* is the most."""
    xs = base_grid(view.domain, min(BASE_POINTS, points // 2))
    return _Sampler(expression, view, points).pieces(xs)


def fitted_range(values: list[float]) -> tuple[float, float] | None:
    """Return the range that shows *values* best, None if there are none.

    The whole of them, unless a few lie so far out (poles) that the rest would be flat.
    """
    finite = sorted(value for value in values if math.isfinite(value) and abs(value) < 1e150)
    if not finite:
        return None
    low, high = finite[0], finite[-1]
    inner_low = finite[int(0.05 * (len(finite) - 1))]
    inner_high = finite[math.ceil(0.95 * (len(finite) - 1))]
    inner = inner_high - inner_low
    if inner > 0 and high - low > 6 * inner:
        low, high = max(low, inner_low - inner / 2), min(high, inner_high + inner / 2)
    return low, high


class _Sampler:
    def __init__(self, expression: Expression, view: View, points: int) -> None:
        self._expression = expression
        self._view = view
        self._left = points
        spare = EVALUATIONS // (4 * expression.nodes)
        self._halvings = max(4 * _HALVINGS, min(_MOST_SUSPECTS * _HALVINGS, spare))
        low, high = view.range
        self._scale = view.height / (high - low)
        # Off the picture a value matters only by its side; nearer ends keep steps comparable.
        self._low, self._high = low - 2 * (high - low), high + 2 * (high - low)

    def pieces(self, xs: list[float]) -> list[Points]:
        ys = self._evaluate(xs)
        for _ in range(_LEVELS):
            wanted = self._wanted(xs, ys)
            if not wanted or self._left <= 0:
                break
            xs, ys = self._refined(xs, ys, wanted[: self._left])
        return self._split(xs, ys)

    def _evaluate(self, xs: list[float]) -> list[float]:
        self._left -= len(xs)
        return self._expression.evaluate(xs)

    def _pixel(self, y: float) -> float:
        return min(max(y, self._low), self._high) * self._scale

    def _wanted(self, xs: list[float], ys: list[float]) -> list[int]:
        """Return the intervals, by their left end, whose middle is to be looked at."""
        finite = [math.isfinite(y) for y in ys]
        pixels = [
            self._pixel(y) if is_finite else 0.0 for y, is_finite in zip(ys, finite, strict=True)
        ]
        wanted = set()
        for index in range(len(xs) - 1):
            if finite[index] != finite[index + 1] or (
                finite[index] and abs(pixels[index + 1] - pixels[index]) > _STEP
            ):
                wanted.add(index)
        for index in range(1, len(xs) - 1):
            if not (finite[index - 1] and finite[index] and finite[index + 1]):
                continue
            before, after = xs[index] - xs[index - 1], xs[index + 1] - xs[index]
            share = before / (before + after)
            straight = pixels[index - 1] + share * (pixels[index + 1] - pixels[index - 1])
            if abs(pixels[index] - straight) > _TOLERANCE:
                wanted |= {index - 1, index}
        return sorted(wanted)

    def _refined(
        self, xs: list[float], ys: list[float], wanted: list[int]
    ) -> tuple[list[float], list[float]]:
        middles = [(xs[index] + xs[index + 1]) / 2 for index in wanted]
        values = self._evaluate(middles)
        together = sorted(zip(xs + middles, ys + values, strict=True), key=lambda point: point[0])
        return [x for x, _ in together], [y for _, y in together]

    # -- joining -------------------------------------------------------------------------------

    def _split(self, xs: list[float], ys: list[float]) -> list[Points]:
        pieces: list[Points] = [[]]
        suspects = 0
        for (x, y), (next_x, next_y) in pairwise(zip(xs, ys, strict=True)):
            if math.isfinite(y):
                pieces[-1].append((x, y))
                if not math.isfinite(next_y):
                    pieces[-1] += self._edge_between(x, next_x)
                    pieces.append([])
                elif abs(self._pixel(next_y) - self._pixel(y)) > _STEP:
                    suspects += 1
                    if suspects <= _MOST_SUSPECTS and not self._joined((x, y), (next_x, next_y)):
                        pieces.append([])
            elif math.isfinite(next_y):
                pieces[-1] += self._edge_between(next_x, x)
        if math.isfinite(ys[-1]):
            pieces[-1].append((xs[-1], ys[-1]))
        return [piece for piece in pieces if piece]

    def _value(self, x: float) -> float:
        self._halvings -= 1
        return self._expression.evaluate([x])[0]

    def _edge_between(self, inside: float, outside: float) -> Points:
        self._halvings -= _HALVINGS
        return _edge(self._expression, inside, outside) if self._halvings > 0 else []

    def _joined(self, left: tuple[float, float], right: tuple[float, float]) -> bool:
        """Whether the curve is whole between two neighbours that lie far apart."""
        first = abs(right[1] - left[1])
        for _ in range(_HALVINGS):
            middle = (left[0] + right[0]) / 2
            if middle in (left[0], right[0]) or self._halvings <= 0:
                break
            y = self._value(middle)
            if not math.isfinite(y):
                return False
            if abs(y - left[1]) > abs(right[1] - y):
                right = (middle, y)
            else:
                left = (middle, y)
            if abs(right[1] - left[1]) < first / 64:
                return True
        return False


def _edge(expression: Expression, inside: float, outside: float) -> Points:
    """Return the outermost point towards *outside* at which a curve is defined, if there is one."""
    found: Points = []
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        y = expression.evaluate([middle])[0]
        if math.isfinite(y):
            inside, found = middle, [(middle, y)]
        else:
            outside = middle
    return found
