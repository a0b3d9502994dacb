# mypy: disable-error-code="import-untyped,import-not-found"
"""Backends are found by entry points and by name, neither of which analysis can follow."""

import sys

from PyInstaller.utils.hooks import collect_submodules, copy_metadata

datas = copy_metadata("keyring")
hiddenimports = collect_submodules("keyring.backends")
if sys.platform == "linux":
    hiddenimports += ["secretstorage", "jeepney", "jeepney.io.blocking"]
# Windows needs pywin32-ctypes, which the backend imports by itself (not tried here).
