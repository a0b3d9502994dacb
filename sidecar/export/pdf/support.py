"""Whether pages can be laid out here."""

import ctypes.util
import functools
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Library → its names as WeasyPrint asks for them; the second is that of Windows.
_LIBRARIES: Final = {
    "Pango": ("pango-1.0", "libpango-1.0-0"),
    "PangoFT2": ("pangoft2-1.0", "libpangoft2-1.0-0"),
    "GObject": ("gobject-2.0", "libgobject-2.0-0"),
    "HarfBuzz": ("harfbuzz", "libharfbuzz-0"),
    "Fontconfig": ("fontconfig", "libfontconfig-1"),
}
COMMANDS: Final = {
    "linux": "apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0",
    "darwin": "brew install pango",
    "win32": "pacman -S mingw-w64-x86_64-pango",
}


@dataclass(frozen=True, slots=True)
class PdfSupport:
    """What PDF needs, by name, each with the place where it is; None for what is missing."""

    parts: Mapping[str, str | None]
    install_command: str | None
    """The command that installs what is missing, None where none is known."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what is missing."""
        return tuple(name for name, place in self.parts.items() if place is None)


@functools.lru_cache(maxsize=1)
def pdf_support() -> PdfSupport:
    """Look for what PDF needs; loads none of it."""
    found = importlib.util.find_spec("weasyprint")
    libraries = {title: _place(short, windows) for title, (short, windows) in _LIBRARIES.items()}
    parts = {"WeasyPrint": (found.origin or "") if found else None, **libraries}
    return PdfSupport(parts, COMMANDS.get(sys.platform))


def _place(short: str, windows: str) -> str | None:
    bundle = getattr(sys, "_MEIPASS", None)
    if bundle:
        for pattern in (f"lib{short}.so*", f"lib{short}.*dylib", f"{windows}.dll"):
            bundled = next(iter(sorted(Path(bundle).glob(pattern))), None)
            if bundled is not None:
                return str(bundled)
    return ctypes.util.find_library(short) or ctypes.util.find_library(windows)
