"""Round numbers along an axis."""

import math
from typing import Final

_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
_MOST: Final = 40


def ticks(low: float, high: float, wanted: int) -> list[tuple[float, str]]:
    """Return about *wanted* round values between *low* and *high*, each with its label."""
    rough = (high - low) / wanted
    magnitude = 10.0 ** math.floor(math.log10(rough))
    if magnitude == 0:
        return []
    step = next(factor * magnitude for factor in _STEPS if factor * magnitude >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first > _MOST:
        return []
    values = [index * step for index in range(first, last + 1)]
    return [(value, _label(value, step)) for value in values]


def _label(value: float, step: float) -> str:
    if value == 0:
        return "0"
    size = max(abs(value), step)
    if step >= 1e-4 and size < 1e6:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return f"{value:.{decimals}f}"
    digits = min(15, max(1, math.ceil(math.log10(size / step)) + 2))
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
