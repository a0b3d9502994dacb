"""What the runtime's folder says, read in a few small files: no process is started for it."""

from dataclasses import dataclass
from pathlib import Path

from cuda_installer import flavours, state
from cuda_installer.errors import InstallerError
from cuda_installer.machine import platform_name
from cuda_installer.settings import RuntimeSettings
from cuda_installer.state import Environment, LastInstall


@dataclass(frozen=True, slots=True)
class OnDisk:
    """The runtime as its files tell it.

    ``stamp`` changes when another environment or interpreter counts, or when its program is gone:
    then what was found out about the earlier one is worth nothing. ``outdated`` tells that this
    version of the program, or the settings, ask for another environment than the one there.
    """

    settings: RuntimeSettings
    current: Environment | None
    last: LastInstall | None
    supported: bool
    outdated: bool
    stamp: tuple[object, ...]

    @property
    def custom(self) -> bool:
        """Whether the user has an interpreter of their own."""
        return bool(self.settings.interpreter)

    @property
    def anything(self) -> bool:
        """Whether there is something to examine."""
        return self.custom or self.current is not None

    def interpreter(self, root: Path) -> Path | None:
        """Return the Python that counts, working or not."""
        if self.custom:
            return Path(self.settings.interpreter)
        return self.current.python(root) if self.current else None


def read_disk(root: Path) -> OnDisk:
    """Read the runtime's files."""
    settings = RuntimeSettings.load(root)
    current = state.read_current(root)
    program = current.python(root) if current else None
    if settings.interpreter:
        program = Path(settings.interpreter)
    return OnDisk(
        settings,
        current,
        state.read_last(root),
        flavours.is_supported(platform_name()),
        current is not None and _is_outdated(current, settings),
        (
            settings.interpreter,
            current.name if current else None,
            program is not None and program.exists(),
        ),
    )


def _is_outdated(current: Environment, settings: RuntimeSettings) -> bool:
    if settings.flavour not in (flavours.AUTO, current.flavour):
        return True
    try:
        flavour = flavours.by_name(current.flavour)
    except InstallerError:
        return True
    return flavour.is_locked and flavour.lock_digest() != current.lock
