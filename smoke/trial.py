"""How a run starts sidecars: which program, where its data go, how they are told from others."""

import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from host_bridge.launcher import Sidecar, launch
from smoke.processes import MARK_VARIABLE

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "sidecar" / "demo" / "recordings"


@dataclass(slots=True)
class Trial:
    """A program under trial with folders of its own below ``home``."""

    command: Sequence[str]
    home: Path
    models_dir: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, executable: str | None, home: Path, models_dir: Path) -> "Trial":
        """Try an executable, or the source tree if none is named."""
        if executable is None:
            return cls([sys.executable, "-m", "sidecar"], home, models_dir)
        return cls([str(Path(executable).resolve())], home, models_dir)

    @property
    def temporary(self) -> Path:
        """The folder that the sidecar is given for temporary files."""
        return self.home / "tmp"

    def folder(self, name: str) -> Path:
        """A folder below ``home``, made if it isn't there."""
        path = self.home / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def environment(self) -> dict[str, str]:
        """This process's environment, marked, with a folder for temporary files."""
        temporary = str(self.folder("tmp"))
        env = {**os.environ, MARK_VARIABLE: self.mark, "TMPDIR": temporary, "TEMP": temporary}
        if self.command[0] == sys.executable:
            env["PYTHONPATH"] = str(ROOT)
        return env

    def launch(self, data_name: str = "data") -> Sidecar:
        """Start a sidecar on a data directory of that name."""
        return launch(
            self.command,
            data_dir=self.folder(data_name),
            extra_args=["--models-dir", str(self.models_dir.resolve())],
            env=self.environment(),
            ready_timeout=60.0,
        )
