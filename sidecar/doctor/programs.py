"""Asks another program a question, within a short time."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from sidecar.kernel.processes import child_environment

LIMIT_SECONDS: Final = 2.0


def output_of(command: Sequence[str], limit_seconds: float = LIMIT_SECONDS) -> str | None:
    """Return what *command* prints; None if it can't be started, fails, or takes too long."""
    flags = 0
    if sys.platform == "win32":
        # A host without a console must not see one flash up.
        flags = subprocess.CREATE_NO_WINDOW
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_seconds,
            check=True,
            env=child_environment(),
            encoding="utf-8",
            errors="replace",
            creationflags=flags,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
