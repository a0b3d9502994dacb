"""The functions and operators that an expression may use. None of them raises: undefined is NaN."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

NAN: Final = math.nan
INFINITY: Final = math.inf

CONSTANTS: Final[dict[str, float]] = {"pi": math.pi, "e": math.e, "tau": math.tau}


@dataclass(frozen=True, slots=True)
class Function:
    """A function, and how many arguments it takes; *most* None: any number."""

    call: Callable[..., float]
    least: int = 1
    most: int | None = 1


def _defined(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return NAN
        except OverflowError:
            return INFINITY

    return call


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(INFINITY, value)


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    # The limit at 0 is no value of the function, and neither is one at infinity.
    return lambda value: function(value) if 0 < value < INFINITY else NAN


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    # Beyond 2**53 every float is whole; int() of infinity would raise.
    return lambda value: float(function(value)) if abs(value) < 2**53 else value


def _sign(value: float) -> float:
    return value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


def _extreme(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: NAN if any(map(math.isnan, values)) else function(values)


def modulo(value: float, divisor: float) -> float:
    """Return the remainder that has the divisor's sign."""
    if divisor == 0 or math.isinf(value):
        return NAN
    return value % divisor


def divide(value: float, divisor: float) -> float:
    """Return a quotient; by zero there is none."""
    return value / divisor if divisor else NAN


def power(base: float, exponent: float) -> float:
    """Return a power as real numbers have it."""
    try:
        return math.pow(base, exponent)
    except ValueError:
        return NAN
    except OverflowError:
        odd = exponent % 2 == 1
        return -INFINITY if base < 0 and odd else INFINITY


FUNCTIONS: Final[dict[str, Function]] = {
    "sin": Function(_defined(math.sin)),
    "cos": Function(_defined(math.cos)),
    "tan": Function(_defined(math.tan)),
    "asin": Function(_defined(math.asin)),
    "acos": Function(_defined(math.acos)),
    "atan": Function(math.atan),
    "sinh": Function(_sinh),
    "cosh": Function(_defined(math.cosh)),
    "tanh": Function(math.tanh),
    "exp": Function(_defined(math.exp)),
    "log": Function(_logarithm(math.log)),
    "ln": Function(_logarithm(math.log)),
    "log10": Function(_logarithm(math.log10)),
    "log2": Function(_logarithm(math.log2)),
    "sqrt": Function(_defined(math.sqrt)),
    "cbrt": Function(math.cbrt),
    "abs": Function(abs),
    "floor": Function(_whole(math.floor)),
    "ceil": Function(_whole(math.ceil)),
    "round": Function(_whole(lambda value: math.floor(value + 0.5))),
    "sign": Function(_sign),
    "min": Function(_extreme(min), 1, None),
    "max": Function(_extreme(max), 1, None),
    "mod": Function(modulo, 2, 2),
}
