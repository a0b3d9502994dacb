"""Where the program keeps its own files."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

APPLICATION: Final = "NotesAgent"
DATA_DIR_VARIABLE: Final = "APP_DATA_DIR"


class DataDirectoryUnusableError(Exception):
    """The data directory can't be created, or can't be written to."""


@dataclass(frozen=True, slots=True)
class DataPaths:
    """The app data directory and what lies in it."""

    root: Path

    @property
    def database(self) -> Path:
        """The one SQLite file."""
        return self.root / "app.db"

    @property
    def lock(self) -> Path:
        """The file that says which process serves the directory."""
        return self.root / "lock"

    @property
    def attachments(self) -> Path:
        """Uploaded recordings, documents and images."""
        return self.root / "attachments"

    @property
    def models(self) -> Path:
        """Model weights that the program manages."""
        return self.root / "models"

    @property
    def runtime(self) -> Path:
        """The managed runtime."""
        return self.root / "runtime"

    @property
    def exports(self) -> Path:
        """Documents that were made, until they expire."""
        return self.root / "exports"

    @property
    def credentials(self) -> Path:
        """The encrypted credential file, where the system has no keyring."""
        return self.root / "credentials"

    @property
    def logs(self) -> Path:
        """Log files."""
        return self.root / "logs"

    @property
    def temporary(self) -> Path:
        """Files that are being written; emptied at each start."""
        return self.root / "tmp"

    def create(self) -> None:
        """Make the folders, readable by the user alone, and prove that they can be written to.

        Raises :class:`DataDirectoryUnusableError`.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in (self.attachments, self.models, self.exports, self.logs, self.temporary):
                folder.mkdir(exist_ok=True, mode=0o700)
            probe = self.temporary / f"probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise DataDirectoryUnusableError from error

    def empty_temporary(self) -> None:
        """Remove what an earlier run left half-written. Only for the holder of the lock."""
        for entry in self.temporary.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def default_data_dir() -> Path:
    """Return the folder of ``APP_DATA_DIR``, else the one that the system keeps for programs."""
    chosen = os.environ.get(DATA_DIR_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs  # noqa: PLC0415 - only without a chosen folder

    return Path(platformdirs.user_data_dir(APPLICATION, appauthor=False))
