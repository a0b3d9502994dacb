"""What documents need: fonts with Chinese characters, Pango for PDF, LibreOffice for old presentations."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from sidecar.doctor.findings import Finding, message
from sidecar.documents.service import DocumentService
from sidecar.export.service import ExportService

# The beginnings of file names, in lower case: a font's coverage is not worth reading thousands of files for.
CHINESE_FONTS: Final = {
    "notosanscjk": "Noto Sans CJK",
    "notosanssc": "Noto Sans SC",
    "notoserifcjk": "Noto Serif CJK",
    "notoserifsc": "Noto Serif SC",
    "sourcehansans": "Source Han Sans",
    "sourcehanserif": "Source Han Serif",
    "wqy-microhei": "WenQuanYi Micro Hei",
    "wqy-zenhei": "WenQuanYi Zen Hei",
    "droidsansfallback": "Droid Sans Fallback",
    "lxgwwenkai": "LXGW WenKai",
    "fandol": "Fandol",
    "sarasa": "Sarasa Gothic",
    "uming": "AR PL UMing",
    "ukai": "AR PL UKai",
    "pingfang": "PingFang",
    "hiragino sans gb": "Hiragino Sans GB",
    "stheiti": "STHeiti",
    "songti": "Songti",
    "msyh": "Microsoft YaHei",
    "simsun": "SimSun",
    "simhei": "SimHei",
    "deng": "DengXian",
    "arialuni": "Arial Unicode MS",
}
FONT_SUFFIXES: Final = frozenset({".ttf", ".otf", ".ttc", ".otc"})
# Far more than a large collection: a folder that is linked to a whole disk must not hold up the rest.
_MOST_FILES: Final = 20_000

_LIBREOFFICE_COMMANDS: Final = {
    "linux": "apt install libreoffice-impress-nogui",
    "darwin": "brew install --cask libreoffice",
    "win32": "winget install TheDocumentFoundation.LibreOffice",
}
# The other systems bring such fonts along.
_FONT_COMMANDS: Final = {"linux": "apt install fonts-noto-cjk"}


def bundle_folder() -> Path | None:
    """Return the folder of the libraries and data of a frozen program; None for others."""
    folder = getattr(sys, "_MEIPASS", None)
    return Path(folder) if folder else None


def font_folders(
    platform: str, environment: Mapping[str, str], home: Path, bundle: Path | None
) -> list[Path]:
    """Return the folders in which fonts lie on *platform* (a value of ``sys.platform``)."""
    bundled = [bundle / "fonts"] if bundle else []
    if platform == "win32":
        windows = environment.get("WINDIR", "C:/Windows")
        local = environment.get("LOCALAPPDATA", str(home / "AppData" / "Local"))
        return [*bundled, Path(windows, "Fonts"), Path(local, "Microsoft", "Windows", "Fonts")]
    if platform == "darwin":
        system = ("/System/Library/Fonts", "/System/Library/AssetsV2", "/Library/Fonts")
        return [*bundled, *map(Path, system), home / "Library" / "Fonts"]
    shared = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    own = environment.get("XDG_DATA_HOME") or str(home / ".local" / "share")
    folders = [Path(folder, "fonts") for folder in [*shared.split(":"), own] if folder]
    return [*bundled, *folders, home / ".fonts"]


def check_cjk_fonts() -> Finding:
    """Whether a font with Chinese characters lies in one of the system's folders."""
    folders = font_folders(sys.platform, os.environ, Path.home(), bundle_folder())
    return fonts_finding(folders)


def fonts_finding(folders: list[Path]) -> Finding:
    """Return what is found in *folders*."""
    fonts: dict[str, str] = {}
    for path in _font_files(folders):
        name = path.name.lower()
        known = next(
            (font for start, font in CHINESE_FONTS.items() if name.startswith(start)), None
        )
        if known is not None:
            fonts.setdefault(known, str(path))
    details: dict[str, object] = {"fonts": fonts, "folders": [str(folder) for folder in folders]}
    if fonts:
        summary = message("cjk_fonts.present", fonts=", ".join(sorted(fonts)))
        return Finding("ok", summary, None, details)
    hint = message("cjk_fonts.hint", command=_FONT_COMMANDS.get(sys.platform))
    return Finding("missing", message("cjk_fonts.absent"), hint, details)


def _font_files(folders: list[Path]) -> Iterator[Path]:
    seen = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                seen += 1
                if seen > _MOST_FILES:
                    return
                path = Path(parent, name)
                if path.suffix.lower() in FONT_SUFFIXES:
                    yield path


def check_pango() -> Finding:
    """Whether what lays out a PDF is there, bundled or the system's."""
    support = ExportService.pdf_support()
    details: dict[str, object] = {"libraries": dict(support.parts)}
    if not support.missing:
        return Finding("ok", message("pango.present"), None, details)
    summary = message("pango.absent", libraries=", ".join(support.missing))
    hint = message("pango.hint", command=support.install_command)
    return Finding("missing", summary, hint, details)


def check_libreoffice() -> Finding:
    """Whether there is what reads old presentations that are attached to a chat."""
    program = DocumentService.converter()
    if program is not None:
        return Finding("ok", message("libreoffice.present"), None, {"path": str(program)})
    hint = message("libreoffice.hint", command=_LIBREOFFICE_COMMANDS.get(sys.platform))
    return Finding("missing", message("libreoffice.absent"), hint)
