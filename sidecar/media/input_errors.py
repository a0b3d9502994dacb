"""Input that has the right shape for a schema and is wrong all the same."""

from sidecar.kernel.errors import ProjectError


def invalid(message: str, *loc: str | int) -> ProjectError:
    """Return ``VALIDATION_ERROR`` for the field at *loc*, in the form of a failed schema."""
    return ProjectError(
        "VALIDATION_ERROR", details={"errors": [{"loc": list(loc), "message": message}]}
    )
