"""What the installer's reasons are called on the wire."""

from collections.abc import Mapping
from typing import Final

from sidecar.kernel.catalogue import Localised
from sidecar.kernel.errors import ProjectError

_CODES: Final = {
    "cancelled": "RUNTIME_INSTALL_INTERRUPTED",
    "disk_full": "DISK_SPACE_INSUFFICIENT",
    "platform_unsupported": "PLATFORM_UNSUPPORTED",
    "uv_missing": "UV_NOT_INSTALLED",
}


def install_error(reason: str | None, figures: Mapping[str, int] | None = None) -> ProjectError:
    """Return the error of an installation that ended for *reason*; unknown ones lack a sentence.

    *figures* belong to the reason: how many bytes a full disk would need to have free, and has.
    """
    code = _CODES.get(reason or "", "RUNTIME_INSTALL_FAILED")
    return ProjectError(code, details={**_details(reason), **(figures or {})})


def environment_error(step: str, *, custom: bool) -> ProjectError:
    """Return the error of an environment in which *step* of its examination fails."""
    reason = "interpreter_unsuitable" if custom else "environment_broken"
    return ProjectError("CAPABILITY_NOT_AVAILABLE", details={**_details(reason), "step": step})


def _details(reason: str | None) -> dict[str, object]:
    if reason is None:
        return {}
    return {"reason": reason, "explanation": Localised(f"runtime.{reason}").to_json()}
