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
        red, green, blue = (int(self.page[start : start + 2], 16) for start in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue < 128


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
