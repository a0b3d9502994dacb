"""Regular expressions that are compiled when they are used first.

Compiling takes milliseconds where a set holds the wide ranges of Chinese, Japanese and Korean, and
the program should be ready before it.
"""

import re
from typing import Any, cast


class _LatePattern:
    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self._source, self._flags), name)
        # From now on it is found without coming here.
        setattr(self, name, found)
        return found


def late_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return what has the methods of a compiled pattern. A mistake in *source* shows at its first use."""
    return cast("re.Pattern[str]", _LatePattern(source, flags))
