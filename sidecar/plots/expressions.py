"""Reads an expression into steps for a stack machine.

The grammar is numbers, ``x``, ``+ - * / ^``, parentheses, signs, the constants and the functions of
:mod:`sidecar.plots.functions`. A product may leave its sign out: ``2x``, ``2sin(x)``, ``(x+1)(x-1)``.
Powers bind tightest and from the right, then signs, then products, then sums. The reader keeps
operators on a stack of its own and doesn't recurse, so no nesting can exhaust the interpreter's.
"""

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sidecar.plots.diagnostics import EXPRESSION_UNSAFE, PARSE_FAILED
from sidecar.plots.functions import CONSTANTS, FUNCTIONS, divide, power

MAX_DEPTH: Final = 200
_SHOWN: Final = 24

_TOKEN: Final = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_\u0370-\u03ff][A-Za-z0-9_]*)"
    r"|(?P<sign>[-+*/^(),])"
)
# What a keyboard for Chinese, or a text from the web, has in the place of ASCII. One for one, so that
# columns stay what they are.
_ALIASES: Final = str.maketrans(
    {"−": "-", "×": "*", "·": "*", "÷": "/", "（": "(", "）": ")", "，": ",", "＋": "+", "＝": "="}
)
_NAMES: Final = {"π": "pi", "τ": "tau"}
_ASSIGNED: Final = re.compile(r"\s*(?:y|f\s*\(\s*x\s*\))\s*=(?!=)")
# Beginnings of what other languages would carry out.
_FORBIDDEN: Final = frozenset(".[]{}='\"`;:@\\!&|<>~?$#")


class ExpressionError(Exception):
    """An expression can't be read; *offset* counts from 0 within its text."""

    def __init__(self, offset: int, key: str, code: str = PARSE_FAILED, **params: object) -> None:
        super().__init__(key)
        self.offset = offset
        self.key = key
        self.code = code
        self.params = params


class Step(NamedTuple):
    """One step: pushes *value*, or x, or what *call* gives for the *arity* topmost values."""

    arity: int
    call: Callable[..., float] | None = None
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be evaluated."""

    steps: tuple[Step, ...]

    @property
    def nodes(self) -> int:
        """How many numbers, names, operators and calls it is made of."""
        return len(self.steps)

    def evaluate(self, xs: list[float]) -> list[float]:
        """Return the values at *xs*; NaN or an infinity where there is none."""
        stack: list[list[float]] = []
        count = len(xs)
        for arity, call, value in self.steps:
            if call is not None:
                arguments = stack[-arity:]
                del stack[-arity:]
                stack.append(list(map(call, *arguments)))
            else:
                stack.append(xs if arity else [value] * count)
        return stack[0]


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


class _Operator(NamedTuple):
    text: str
    binding: int
    arity: int
    call: Callable[..., float]
    offset: int


_BINARY: Final[dict[str, tuple[int, Callable[..., float]]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "/": (2, divide),
    "^": (4, power),
}
_SIGN_BINDING: Final = 3
_POWER: Final = 4


@dataclass(slots=True)
class _Open:
    """An open parenthesis; *function* is the name before it, *arguments* how many have ended."""

    offset: int
    function: str | None = None
    arguments: int = 0


def parse_expression(text: str) -> Expression:
    """Read *text*, which may begin with ``y =``. Raises :class:`ExpressionError`."""
    return _Reader(text).read()


def _tokens(text: str) -> Iterator[_Token]:
    plain = text.translate(_ALIASES)
    assigned = _ASSIGNED.match(plain)
    position = assigned.end() if assigned else 0
    while position < len(plain):
        match = _TOKEN.match(plain, position)
        if match is None:
            unsafe = plain[position] in _FORBIDDEN
            raise ExpressionError(
                position,
                "character",
                EXPRESSION_UNSAFE if unsafe else PARSE_FAILED,
                found=text[position],
            )
        kind = match.lastgroup or ""
        if kind != "blank":
            yield _Token(kind, match.group(), position)
        position = match.end()
    yield _Token("end", "", len(text.rstrip()))


@dataclass(slots=True)
class _Reader:
    text: str
    steps: list[Step] = field(default_factory=list)
    waiting: list[_Operator | _Open] = field(default_factory=list)
    depth: int = 0
    signs: int = 0
    function: _Token | None = None
    after_value: bool = False

    def read(self) -> Expression:
        for token in _tokens(self.text):
            if self.function is not None and token.text != "(":
                raise ExpressionError(token.offset, "call", name=self.function.text)
            if token.kind == "end":
                self._end(token)
            elif token.kind == "number":
                self._value(token, Step(0, value=float(token.text)))
            elif token.kind == "name":
                self._name(token)
            elif token.text == "(":
                self._open(token)
            elif token.text == ")":
                self._close(token)
            elif token.text == ",":
                self._comma(token)
            else:
                self._operator(token)
        return Expression(tuple(self.steps))

    def _end(self, token: _Token) -> None:
        if not self.after_value:
            raise ExpressionError(token.offset, "empty" if not self.steps else "ends_early")
        opened = self._reduce_to_open()
        if opened is not None:
            raise ExpressionError(opened.offset, "unclosed")

    def _value(self, token: _Token, step: Step) -> None:
        if self.after_value:
            if token.kind == "number":
                raise ExpressionError(token.offset, "unexpected", found=token.text[:_SHOWN])
            self._multiply(token)
        self.steps.append(step)
        self.after_value, self.signs = True, 0

    def _name(self, token: _Token) -> None:
        name = _NAMES.get(token.text, token.text)
        if name == "x":
            self._value(token, Step(1))
        elif name in CONSTANTS:
            self._value(token, Step(0, value=CONSTANTS[name]))
        elif name in FUNCTIONS:
            if self.after_value:
                self._multiply(token)
            self.function = token
        else:
            raise ExpressionError(token.offset, "name", EXPRESSION_UNSAFE, name=name[:_SHOWN])

    def _open(self, token: _Token) -> None:
        if self.after_value:
            self._multiply(token)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(token.offset, "too_deep", limit=MAX_DEPTH)
        self.waiting.append(_Open(token.offset, self.function.text if self.function else None))
        self.function, self.after_value, self.signs = None, False, 0

    def _comma(self, token: _Token) -> None:
        opened = self._reduce_to_open() if self.after_value else None
        if opened is None or opened.function is None:
            raise ExpressionError(token.offset, "unexpected", found=",")
        opened.arguments += 1
        self.after_value = False

    def _close(self, token: _Token) -> None:
        opened = self._reduce_to_open() if self.after_value else None
        if opened is None:
            raise ExpressionError(token.offset, "unexpected", found=")")
        self.waiting.pop()
        self.depth -= 1
        if opened.function is not None:
            function, count = FUNCTIONS[opened.function], opened.arguments + 1
            if count < function.least or (function.most is not None and count > function.most):
                raise ExpressionError(
                    opened.offset, "arguments", name=opened.function, wanted=function.least
                )
            self.steps.append(Step(count, function.call))

    def _operator(self, token: _Token) -> None:
        if self.after_value:
            binding, call = _BINARY[token.text]
            self._push(_Operator(token.text, binding, 2, call, token.offset))
            self.after_value = False
        elif token.text in "+-":
            self.signs += 1
            if self.signs > MAX_DEPTH:
                raise ExpressionError(token.offset, "too_deep", limit=MAX_DEPTH)
            call = operator.neg if token.text == "-" else operator.pos
            # A sign stands before its operand, so nothing that waits can be complete.
            self.waiting.append(_Operator(token.text, _SIGN_BINDING, 1, call, token.offset))
        else:
            raise ExpressionError(token.offset, "unexpected", found=token.text)

    def _multiply(self, token: _Token) -> None:
        self._push(_Operator("*", _BINARY["*"][0], 2, operator.mul, token.offset))
        self.after_value = False

    def _push(self, pushed: _Operator) -> None:
        while self.waiting and isinstance(top := self.waiting[-1], _Operator):
            from_the_right = pushed.binding == _POWER
            if top.binding < pushed.binding or (from_the_right and top.binding == _POWER):
                break
            self.waiting.pop()
            self.steps.append(Step(top.arity, top.call))
        self.waiting.append(pushed)

    def _reduce_to_open(self) -> _Open | None:
        while self.waiting:
            top = self.waiting[-1]
            if isinstance(top, _Open):
                return top
            self.waiting.pop()
            self.steps.append(Step(top.arity, top.call))
        return None
