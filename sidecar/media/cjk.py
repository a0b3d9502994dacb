"""Chinese, Japanese and Korean characters: what is written without spaces and read by the character."""

from collections.abc import Iterable
from typing import Final

from sidecar.kernel.late_patterns import late_pattern

CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""The characters as the inside of a character class."""

_CJK: Final = late_pattern(f"[{CJK}]")


def is_cjk(text: str) -> bool:
    """Whether the text holds a Chinese, Japanese or Korean character."""
    return _CJK.search(text) is not None


def run_on(texts: Iterable[str]) -> str:
    """Return *texts* as one: with a blank between two of them, unless such a character is beside it."""
    whole = ""
    for text in texts:
        has_blank = whole and text and not is_cjk(whole[-1] + text[0])
        whole += (" " if has_blank else "") + text
    return whole
