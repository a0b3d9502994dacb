"""The version resource of the Windows executable: what Explorer shows under Details."""

import re

PRODUCT = "NotesAgent Sidecar"
DESCRIPTION = "NotesAgent Sidecar: local server of the notes app"

_TEMPLATE = """\
VSVersionInfo(
  ffi=FixedFileInfo(
    filevers={numbers}, prodvers={numbers},
    mask=0x3f, flags={flags:#x}, OS=0x40004, fileType=0x1, subtype=0x0, date=(0, 0)
  ),
  kids=[
    StringFileInfo([StringTable("040904B0", [
      StringStruct("CompanyName", {product!r}),
      StringStruct("FileDescription", {description!r}),
      StringStruct("FileVersion", {version!r}),
      StringStruct("InternalName", "sidecar"),
      StringStruct("OriginalFilename", "sidecar.exe"),
      StringStruct("ProductName", {product!r}),
      StringStruct("ProductVersion", {version!r}),
    ])]),
    VarFileInfo([VarStruct("Translation", [0x0409, 1200])]),
  ]
)
"""
_PRERELEASE_FLAG = 0x2


def version_resource(version: str) -> str:
    """The text that PyInstaller reads for ``version``, such as ``1.2.3`` or ``1.2.3rc1``.

    Windows wants four numbers; what follows the first three only shows in the texts.
    """
    match = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", version)
    if match is None:
        raise ValueError(f"a version begins with a number, not like {version!r}")
    numbers = (*(int(part or 0) for part in match.groups()), 0)
    return _TEMPLATE.format(
        numbers=numbers,
        flags=_PRERELEASE_FLAG if version[match.end() :] else 0,
        product=PRODUCT,
        description=DESCRIPTION,
        version=version,
    )
