"""What can go wrong, told by a reason that programs branch on and a sentence for a person."""

import errno
import os
import re
from collections.abc import Mapping
from typing import Final

EXPLANATIONS: Final = {
    "platform_unsupported": "There is no runtime for this computer.",
    "flavour_unknown": "There is no flavour of this name.",
    "flavour_not_locked": "This build has no lock file for that flavour.",
    "uv_missing": "No usable uv was found. Install uv, or name it with --uv.",
    "interpreter_missing": (
        "No suitable Python was found, and none could be installed. Install Python 3.11, or"
        " 3.13 for a graphics card, or give an archive of one with --python-archive."
    ),
    "interpreter_unusable": "That Python interpreter cannot be used.",
    "archive_invalid": "The archive holds no Python that runs here.",
    "wheelhouse_missing": "The folder with packages is not there.",
    "disk_full": "There is not enough free disk space.",
    "packages_unavailable": "The packages could not be fetched, or are not the locked ones.",
    "environment_failed": "The environment could not be made.",
    "verification_failed": "The environment was made, but code that needs it does not run in it.",
    "wrong_flavour": "The environment has torch for another kind of hardware than was asked for.",
    "busy": "Another installation is running.",
    "cancelled": "The installation was interrupted.",
    "custom_interpreter": "An interpreter of your own is configured; nothing is installed into it.",
    "not_installed": "No runtime is installed.",
}


class InstallerError(Exception):
    """A failure that is understood.

    *reason* is a key of :data:`EXPLANATIONS`. *technical* is for a log: it may hold paths and the
    words of another program. *figures* belong to the reason and are safe to show.
    """

    def __init__(
        self, reason: str, technical: str = "", figures: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(EXPLANATIONS[reason])
        self.reason = reason
        self.technical = technical
        self.figures = dict(figures or {})


# The numbers that a full disk, or a used-up share of one, has in this system's errors.
_FULL: Final = (39, 112) if os.name == "nt" else (errno.ENOSPC, errno.EDQUOT)
_NUMBER: Final = re.compile(r"\(os error (\d+)\)")


def of_os_error(error: OSError) -> InstallerError:
    """Return the failure of an installation that the system refused something."""
    number = getattr(error, "winerror", None) or error.errno
    return InstallerError("disk_full" if number in _FULL else "environment_failed", str(error))


def tells_of_full_disk(line: str) -> bool:
    """Whether a program written in Rust, such as uv, says so that the disk is full."""
    return any(int(number) in _FULL for number in _NUMBER.findall(line))


class Cancelled(InstallerError):
    """Somebody asked for the end of the work."""

    def __init__(self) -> None:
        super().__init__("cancelled")
