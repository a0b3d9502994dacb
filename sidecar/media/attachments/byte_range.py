"""Checks a Range header before a file is sent, so that a bad one gets the project's error object."""

import re
from typing import Final

from sidecar.kernel.errors import ProjectError

# No file is so long that its bytes are counted in more digits.
_ONE_RANGE: Final = re.compile(r"(\d{0,18})\s*-\s*(\d{0,18})")


def usable_range(header: str, size: int) -> bool:
    """Whether *header* asks for parts of a file of *size* bytes.

    False for a header that isn't valid, which is to be ignored (RFC 9110). Raises
    ``RANGE_NOT_SATISFIABLE`` if no part that it asks for lies inside the file.
    """
    unit, equals, ranges = header.partition("=")
    if not equals or unit.strip().lower() != "bytes":
        return False
    inside: list[bool] = []
    for part in ranges.split(","):
        match = _ONE_RANGE.fullmatch(part.strip())
        if match is None or not any(match.groups()):
            return False
        first, last = match.groups()
        if first and last and int(last) < int(first):
            return False
        inside.append(int(first) < size if first else int(last) > 0)
    if not any(inside):
        error = ProjectError("RANGE_NOT_SATISFIABLE", details={"size": size})
        error.headers["Content-Range"] = f"bytes */{size}"
        raise error
    return all(inside)
