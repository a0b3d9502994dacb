"""What making documents needs beside Python: Pango with its relatives, and fonts."""

import os
import re
import subprocess
import sys
from pathlib import Path

# PyInstaller's own hook for WeasyPrint finds none of them in some environments and says nothing. A
# library that comes along must bring its relatives, too: a HarfBuzz of the system beside it would
# be another build.
LIBRARIES = (
    "libgobject-2.0.so.0",
    "libpango-1.0.so.0",
    "libpangoft2-1.0.so.0",
    "libharfbuzz.so.0",
    "libharfbuzz-subset.so.0",
    "libfontconfig.so.1",
)
# The last two are only missed in code with italic comments.
FONTS = (
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJK-Bold.ttc",
    "DejaVuSans.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSansMono-Bold.ttf",
    "DejaVuSansMono-Oblique.ttf",
    "DejaVuSansMono-BoldOblique.ttf",
)
NEEDED_FONTS = FONTS[:5]
FONTS_VARIABLE = "SIDECAR_FONTS_DIR"
_PACKAGES = "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-noto-cjk fonts-dejavu-core"


class MissingForDocuments(Exception):
    """A library or a font isn't on this machine."""


def pango_binaries() -> list[tuple[str, str]]:
    """Return the libraries as PyInstaller's `binaries`; elsewhere than on Linux its hook finds them."""
    if not sys.platform.startswith("linux"):
        return []
    listed = subprocess.run(
        ["ldconfig", "-p"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin"},
    ).stdout
    known = dict(re.findall(r"^\s*(\S+) .*=> (\S+)$", listed, re.MULTILINE))
    missing = [name for name in LIBRARIES if name not in known]
    if missing:
        raise MissingForDocuments(
            f"not installed: {', '.join(missing)}; on Debian: apt-get install {_PACKAGES}"
        )
    return [(known[name], ".") for name in LIBRARIES]


def font_files() -> list[tuple[str, str]]:
    """Return the fonts as PyInstaller's `datas`, from `SIDECAR_FONTS_DIR` or the system's folders."""
    folders = [Path(folder) for folder in (os.environ.get(FONTS_VARIABLE),) if folder]
    folders += [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), Path.home() / ".fonts"]
    found: dict[str, Path] = {}
    for folder in folders:
        for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if file.name in FONTS:
                found.setdefault(file.name, file)
    missing = [name for name in NEEDED_FONTS if name not in found]
    if missing:
        raise MissingForDocuments(
            f"fonts not found: {', '.join(missing)}; on Debian: apt-get install {_PACKAGES}, "
            f"elsewhere put them into a folder and name it in {FONTS_VARIABLE}"
        )
    return [(str(file), "fonts") for file in found.values()]
