"""The fonts that documents are made with: those that came with the program first, the system's after."""

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

CONFIGURATION: Final = "FONTCONFIG_FILE"

# The beginnings of the names of files with Chinese characters, from the one that reads best.
CHINESE: Final = (
    "notosanssc",
    "notosanscjksc",
    "notosanscjk",
    "sourcehansanssc",
    "sourcehansans",
    "pingfang",
    "msyh",
    "deng",
    "hiragino sans gb",
    "wqy-microhei",
    "wqy-zenhei",
    "droidsansfallback",
    "simhei",
    "stheiti",
    "simsun",
    "notoserifsc",
    "notoserifcjk",
)
LATIN: Final = ("dejavusans.", "notosans-regular", "liberationsans-regular", "arial.", "segoeui.")
_SUFFIXES: Final = (".ttf", ".otf", ".ttc")
_MOST_FILES: Final = 20_000
_BEYOND_LATIN: Final = 0x2E80


def bundled_folder() -> Path | None:
    """Return the folder of the fonts in a frozen program, None for others."""
    bundle = getattr(sys, "_MEIPASS", None)
    return Path(bundle, "fonts") if bundle else None


def system_folders() -> list[Path]:
    """Return the folders in which this system keeps fonts."""
    home = Path.home()
    if sys.platform == "win32":
        windows = os.environ.get("WINDIR", "C:/Windows")
        local = os.environ.get("LOCALAPPDATA", str(home / "AppData" / "Local"))
        return [Path(windows, "Fonts"), Path(local, "Microsoft", "Windows", "Fonts")]
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library" / "Fonts"]
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    own = os.environ.get("XDG_DATA_HOME") or str(home / ".local" / "share")
    return [
        *(Path(folder, "fonts") for folder in [*shared.split(":"), own] if folder),
        home / ".fonts",
    ]


class Fonts:
    """Looks for font files, in the given folders before the system's."""

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        bundled = bundled_folder()
        self.own = tuple(
            folder for folder in ((*folders, bundled) if bundled else folders) if folder.is_dir()
        )

    def file_for(self, words: str) -> Path | None:
        """Return a font file that has the characters of *words*, as far as one is known."""
        wide = any(ord(character) >= _BEYOND_LATIN for character in words)
        return self.chinese() if wide else self.latin()

    @lru_cache(maxsize=1)  # noqa: B019 - there is one of these in a process
    def chinese(self) -> Path | None:
        """Return a font file with Chinese characters."""
        return self._find(CHINESE)

    @lru_cache(maxsize=1)  # noqa: B019
    def latin(self) -> Path | None:
        """Return a font file for everything else."""
        return self._find(LATIN) or self.chinese()

    def _find(self, beginnings: tuple[str, ...]) -> Path | None:
        found: dict[str, Path] = {}
        for path in self._files():
            name = path.name.lower()
            for beginning in beginnings:
                if name.startswith(beginning) and "-bold" not in name:
                    found.setdefault(beginning, path)
        return next((found[beginning] for beginning in beginnings if beginning in found), None)

    @lru_cache(maxsize=1)  # noqa: B019
    def _files(self) -> tuple[Path, ...]:
        files: list[Path] = []
        for folder in (*self.own, *system_folders()):
            for parent, _, names in os.walk(folder):
                files += (Path(parent, n) for n in sorted(names) if n.lower().endswith(_SUFFIXES))
                if len(files) > _MOST_FILES:
                    return tuple(files)
        return tuple(files)

    def configuration(self, cache: Path) -> str:
        """Return a configuration for Fontconfig, which keeps its index of the fonts in *cache*."""
        parts = [f"<dir>{escape(str(folder))}</dir>" for folder in self.own]
        if sys.platform.startswith("linux"):
            parts.append('<include ignore_missing="yes">/etc/fonts/fonts.conf</include>')
        parts += [f"<dir>{escape(str(folder))}</dir>" for folder in system_folders()]
        return (
            '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n'
            f"{chr(10).join(parts)}\n<cachedir>{escape(str(cache))}</cachedir>\n</fontconfig>\n"
        )
