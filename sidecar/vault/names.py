"""Names of files and folders: safe on every system, and never a way out of the vault."""

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from sidecar.kernel.errors import ProjectError

NOTE_SUFFIX: Final = ".md"
# File systems take 255 bytes; what is left over holds the suffix, a number and a temporary name.
STEM_BYTES: Final = 200
FOLDER_CHARS: Final = 1000

_RESERVED: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE
)
_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u2028\u2029]+')
_DRIVE: Final = re.compile(r"[A-Za-z]:")


def is_note_name(name: str) -> bool:
    """Whether a file of this name is a note."""
    return name.lower().endswith(NOTE_SUFFIX) and not name.startswith(".")


def safe_name(text: str, fallback: str = "Untitled") -> str:
    """Return a name for *text* that Windows, macOS and Linux take, without a suffix."""
    name = _FORBIDDEN.sub("-", unicodedata.normalize("NFC", text)).strip()
    name = name.strip("-") if not name.strip("-. ") else name
    name = _cut(name).strip().rstrip(". ")
    if name.startswith("."):
        name = f"_{name.lstrip('.')}"
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    return name or fallback


def _cut(name: str) -> str:
    if len(name.encode("utf-8")) <= STEM_BYTES:
        return name
    cut = name.encode("utf-8")[:STEM_BYTES].decode("utf-8", "ignore")
    # A character and the marks upon it stay together.
    while cut and len(cut) < len(name) and unicodedata.combining(name[len(cut)]):
        cut = cut[:-1]
    return cut


def collision_key(name: str) -> str:
    """Return *name* as the least discerning file system sees it."""
    return unicodedata.normalize("NFC", name).casefold()


def free_name(stem: str, suffix: str, taken: Collection[str]) -> str:
    """Return ``stem + suffix``, with a number if its collision key is among *taken*."""
    name = f"{stem}{suffix}"
    number = 2
    while collision_key(name) in taken:
        name = f"{stem} {number}{suffix}"
        number += 1
    return name


def check_folder(folder: str, field: str = "folder") -> str:
    """Return *folder* without a closing slash; raises ``VALIDATION_ERROR`` for an unusable one.

    A folder is relative to the vault, with ``/`` between its names; "" is the vault itself.
    """
    folder = folder.removesuffix("/") if folder != "/" else folder
    if not folder:
        return ""
    if len(folder) > FOLDER_CHARS or _leaves_vault(folder):
        raise _invalid(field, "The folder must be a path inside the vault, with / between names.")
    for name in folder.split("/"):
        if not name.strip() or name.startswith("."):
            raise _invalid(field, "A folder's name must not be empty or begin with a dot.")
        if len(name.encode("utf-8")) > 255:
            raise _invalid(field, "A folder's name must not be longer than 255 bytes.")
    return folder


def _leaves_vault(folder: str) -> bool:
    return (
        folder.startswith(("/", "~"))
        or _DRIVE.match(folder) is not None
        or "\\" in folder
        or any(unicodedata.category(character) in ("Cc", "Cs") for character in folder)
        or ".." in folder.split("/")
    )


def _invalid(field: str, message: str) -> ProjectError:
    return ProjectError(
        "VALIDATION_ERROR", details={"errors": [{"loc": ["body", field], "message": message}]}
    )


def split_path(path: str) -> tuple[str, str]:
    """Return (folder, file name) of a path in the vault."""
    folder, _, name = path.rpartition("/")
    return folder, name


def join_path(folder: str, name: str) -> str:
    """Return the path in the vault of *name* in *folder*."""
    return f"{folder}/{name}" if folder else name


def stem_of(path: str) -> str:
    """Return a note's file name without its suffix."""
    return split_path(path)[1][: -len(NOTE_SUFFIX)]
