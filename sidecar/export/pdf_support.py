"""Whether pages can be laid out here."""

import ctypes.util
import functools
import importlib.util
import sys
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


@functools.lru_cache(maxsize=1)
def missing_for_pdf() -> tuple[str, ...]:
    """Return the names of what is missing for PDF, nothing if all is there. Loads none of it."""
    if importlib.util.find_spec("weasyprint") is None:
        return ("WeasyPrint",)
    return tuple(name for name, names in _LIBRARIES.items() if not _is_there(*names))


def install_command() -> str | None:
    """Return the command that installs what is missing, None where none is known."""
    return COMMANDS.get(sys.platform)


def _is_there(short: str, windows: str) -> bool:
    bundle = getattr(sys, "_MEIPASS", None)
    if bundle:
        patterns = (f"lib{short}.so*", f"lib{short}.*dylib", f"{windows}.dll")
        return any(next(Path(bundle).glob(pattern), None) for pattern in patterns)
    return bool(ctypes.util.find_library(short) or ctypes.util.find_library(windows))
