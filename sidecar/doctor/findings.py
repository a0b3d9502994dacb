"""What a check returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sidecar.kernel.catalogue import Localised

Status = Literal["ok", "warning", "missing", "error"]

ESSENTIAL: Final = frozenset({"data_directory", "database", "speech_packages"})
"""The checks without which the program can't do its work; the others each cost one ability."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part. ``details`` holds JSON values; ``hint`` says what to do, if anything."""

    status: Status
    summary: Localised
    hint: Localised | None = None
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedFinding:
    """A finding and the check that it comes from."""

    name: str
    finding: Finding

    @property
    def broken(self) -> bool:
        """Whether something essential doesn't work."""
        return self.name in ESSENTIAL and self.finding.status in ("missing", "error")


def message(key: str, **params: object) -> Localised:
    """Return the catalogue's message ``doctor.<key>``."""
    return Localised(f"doctor.{key}", params)
