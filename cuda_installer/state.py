"""What is on disk: which environment counts, how the last installation went, and who installs now.

current.json      names the environment that counts; replaced by one rename
state.json        the last installation: its status, stage and reason
install.lock      held by a running installation, and let go by the system when it dies
environments/     one folder an environment
cache/ pythons/   uv's
authorities.pem   whom uv trusts, if the program that this belongs to has more than the usual ones
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cuda_installer.errors import InstallerError, of_os_error

CURRENT: Final = "current.json"
STATE: Final = "state.json"
LOCK: Final = "install.lock"
ENVIRONMENTS: Final = "environments"
AUTHORITIES: Final = "authorities.pem"
PYTHONS: Final = "pythons"
UNFINISHED: Final = ".part"
"""What the name of a Python's folder ends with while it is unpacked."""
SPLIT_LOCKS: Final = "locks-"
"""What the names of folders begin with that hold parts of a lock while uv reads them."""
STAGES: Final = (
    "preparing",
    "creating_environment",
    "resolving",
    "downloading",
    "installing",
    "verifying",
    "finishing",
)
"""The stages of an installation in their order; none is ever gone back to."""

# A reader holds the lock for a moment to see whether it is free.
_LOCK_PATIENCE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment that counts. ``name`` is its folder's; ``lock`` the digest of its lock file."""

    name: str
    flavour: str
    lock: str
    torch: str | None
    cuda: str | None
    cuda_available: bool
    steps: tuple[str, ...]
    installed_at: str

    def folder(self, root: Path) -> Path:
        """Where it lies."""
        return root / ENVIRONMENTS / self.name

    def python(self, root: Path) -> Path:
        """Return its interpreter."""
        return environment_python(self.folder(root))


@dataclass(frozen=True, slots=True)
class LastInstall:
    """How the last installation went: ``installing``, ``failed``, ``interrupted`` or ``done``.

    ``figures`` are those of the reason, such as the bytes that a full disk lacked.
    """

    status: str
    stage: str | None = None
    reason: str | None = None
    flavour: str | None = None
    figures: dict[str, int] = field(default_factory=dict)


def environment_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    if os.name == "nt":
        return folder / "Scripts" / "python.exe"
    return folder / "bin" / "python"


def read_current(root: Path) -> Environment | None:
    """Return the environment that counts; None if there is none."""
    stored = _read(root / CURRENT)
    try:
        # The name becomes a path: it must be one plain folder.
        if stored is None or Path(stored["name"]).name != stored["name"]:
            return None
        return Environment(**{**stored, "steps": tuple(stored["steps"])})
    except (KeyError, TypeError):
        return None


def switch_to(root: Path, environment: Environment) -> None:
    """Make *environment* the one that counts, in one rename."""
    _write(root / CURRENT, asdict(environment))


def read_last(root: Path) -> LastInstall | None:
    """Return how the last installation went.

    One that says it is under way although nobody holds the lock was ``interrupted``.
    """
    stored = _read(root / STATE)
    if stored is None or not isinstance(stored.get("status"), str):
        return None
    figures = stored.get("figures")
    last = LastInstall(
        stored["status"],
        stored.get("stage"),
        stored.get("reason"),
        stored.get("flavour"),
        figures if isinstance(figures, dict) else {},
    )
    if last.status == "installing" and not is_installing(root):
        return LastInstall("interrupted", None, "cancelled", last.flavour)
    return last


def write_last(root: Path, last: LastInstall) -> None:
    """Note how the installation goes."""
    _write(root / STATE, asdict(last))


def clear(root: Path) -> None:
    """Forget every environment and remove what belongs to them. For the holder of the lock."""
    (root / CURRENT).unlink(missing_ok=True)
    (root / STATE).unlink(missing_ok=True)
    (root / AUTHORITIES).unlink(missing_ok=True)
    for name in (ENVIRONMENTS, "cache", PYTHONS):
        shutil.rmtree(root / name, ignore_errors=True)
    remove_leftovers(root)


def remove_leftovers(root: Path) -> None:
    """Remove every environment but the one that counts, and what killed installations left.

    For the holder of the lock.
    """
    current = read_current(root)
    folder = root / ENVIRONMENTS
    leftovers = [
        entry
        for entry in (folder.iterdir() if folder.is_dir() else ())
        if current is None or entry.name != current.name
    ]
    leftovers += [*root.glob(f"{SPLIT_LOCKS}*"), *root.glob(f"{PYTHONS}/*{UNFINISHED}")]
    for entry in leftovers:
        # What is still open on Windows goes the next time.
        shutil.rmtree(entry, ignore_errors=True)


@contextlib.contextmanager
def installation_lock(root: Path) -> Iterator[None]:
    """Hold the lock of an installation; InstallerError ``busy`` if somebody else does.

    ``environment_failed`` or ``disk_full`` if the folder can't be written to.
    """
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise of_os_error(error) from error
    try:
        deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise InstallerError("busy")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def is_installing(root: Path) -> bool:
    """Whether an installation runs, in whichever process."""
    try:
        descriptor = os.open(root / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int, *, shared: bool = False) -> bool:  # noqa: ARG001 - none there
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int, *, shared: bool = False) -> bool:
        # Readers must not take one another for an installation.
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def _read(path: Path) -> dict[str, Any] | None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Both files are replaced whole: one that can't be read is as good as none.
        return None
    return stored if isinstance(stored, dict) else None


def _write(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_suffix(".tmp")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
