"""Why nothing can be taken from a file."""

from typing import Literal, get_args

Reason = Literal[
    "damaged",
    "encrypted",
    "missing",
    "wrong_type",
    "unsupported",
    "no_text",
    "too_large",
    "too_complex",
    "too_many_pixels",
    "took_too_long",
    "converter_missing",
    "conversion_failed",
]
"""Each has its text in the catalogue: ``attachment.<reason>``."""

REASONS: tuple[Reason, ...] = get_args(Reason)


class Refused(Exception):
    """Nothing is taken from the file."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
