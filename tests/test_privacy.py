"""No library tells anybody about the user."""

import os
import subprocess
import sys
from pathlib import Path

from sidecar.kernel.processes import child_environment
from sidecar.privacy import QUIET

RUN_VAD = """
import sidecar
import numpy
from faster_whisper.vad import get_speech_timestamps
get_speech_timestamps(numpy.zeros(16000, dtype=numpy.float32))
"""


def test_onnx_runtime_leaves_no_trace_of_itself(tmp_path: Path) -> None:
    # A build server is taken for one and left alone: this run must look like a user's.
    environment = {name: value for name, value in os.environ.items() if not _marks_ci(name)}
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    for folder in (home, temporary):
        folder.mkdir()
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(home)}
    for name in QUIET:
        environment.pop(name, None)

    subprocess.run([sys.executable, "-c", RUN_VAD], env=environment, check=True, timeout=60)

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def _marks_ci(name: str) -> bool:
    return name in ("CI", "BUILD_ID", "TF_BUILD") or name.startswith(("GITHUB_", "GITLAB_"))


def test_children_are_kept_as_quiet() -> None:
    environment = child_environment(base=os.environ)

    assert environment.items() >= QUIET.items()
