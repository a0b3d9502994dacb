"""The colours of exported documents: the six built-in themes, and the themes of highlighted code."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

DEFAULT_THEME: Final = "light"

CodeTheme = Literal[
    "github-light",
    "github-dark",
    "solarized-light",
    "solarized-dark",
    "monokai",
    "nord",
    "one-dark",
]
CODE_THEMES: Final[tuple[CodeTheme, ...]] = get_args(CodeTheme)


# The least contrast of letters that can still be read.
_READABLE: Final = 3.0


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    shares = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * shares[0] + 0.7152 * shares[1] + 0.0722 * shares[2]


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def readable(colour: str, background: str, text: str) -> str:
    """Return *colour*, drawn towards *text* as far as it must be to be read on *background*."""
    for step in range(11):
        mixed = "#" + "".join(
            f"{round(own + (other - own) * step / 10):02x}"
            for own, other in zip(_channels(colour), _channels(text), strict=True)
        )
        if contrast(mixed, background) >= 1.3 * _READABLE:
            return mixed
    return text


@dataclass(frozen=True, slots=True)
class Colours:
    """The seven colours of a document, each ``#rrggbb``."""

    page: str
    surface: str
    text: str
    muted: str
    code: str
    border: str
    accent: str

    @property
    def is_dark(self) -> bool:
        """Whether the page is darker than its middle grey."""
        red, green, blue = _channels(self.page)
        return 0.299 * red + 0.587 * green + 0.114 * blue < 128

    @property
    def code_text(self) -> str:
        """The colour of code: *code*, unless it can't be read on the surface."""
        return self.code if contrast(self.code, self.surface) >= _READABLE else self.text

    @property
    def code_background(self) -> str:
        """What code stands on: the surface, unless *code* is meant as the colour of it."""
        if contrast(self.code, self.surface) >= _READABLE:
            return self.surface
        return self.code if contrast(self.text, self.code) >= _READABLE else self.surface


# Text on its page keeps a contrast of 7 or more, muted text 4.5.
THEMES: Final[dict[str, Colours]] = {
    "light": Colours("#ffffff", "#f6f8fa", "#1f2328", "#59636e", "#0550ae", "#d1d9e0", "#0969da"),
    "dark": Colours("#0d1117", "#161b22", "#e6edf3", "#9198a1", "#a5d6ff", "#3d444d", "#4493f8"),
    "sepia": Colours("#f8f1e3", "#efe5d0", "#3b2f20", "#6b5b46", "#7a3e00", "#d8c8a8", "#8a4b08"),
    "forest": Colours("#f3f7f2", "#e4eee2", "#1c2b1f", "#4c6150", "#1b5e34", "#c3d5c2", "#1f6f43"),
    "ocean": Colours("#f1f7fb", "#e0eef6", "#12283a", "#48627a", "#0b4f7d", "#bcd4e4", "#0b669e"),
    "high-contrast": Colours(
        "#000000", "#1a1a1a", "#ffffff", "#e0e0e0", "#ffff00", "#ffffff", "#00ffff"
    ),
}
