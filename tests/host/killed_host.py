"""A host that is meant to be killed: a sidecar at work, whose process ids it prints.

``work`` gives it a worker with its child, and a stubborn worker with a stubborn child;
``transcribe`` a recording and the real speech worker. The list begins with the sidecar.
"""

import json
import sys
import threading
from pathlib import Path

from host_bridge.launcher import Sidecar, launch
from host_bridge.process_tree import descendants
from tests.app_client import MODELS_DIR, ROOT

LECTURE = ROOT / "sidecar" / "demo" / "recordings" / "zh-lecture.flac"


def begin_work(folder: Path) -> Sidecar:
    """Start the sidecar with two workers that never finish."""
    command = [sys.executable, "-m", "tests.host.working_sidecar"]
    sidecar = launch(command, data_dir=folder / "data")
    for stubborn in (False, True):
        sidecar.host_post("/host/trial/work", json={"ignore_signals": stubborn}).check(201)
    return sidecar


def begin_transcription(folder: Path) -> Sidecar:
    """Start the sidecar and return once it transcribes."""
    (folder / "vault").mkdir()
    models = ("--models-dir", str(MODELS_DIR))
    sidecar = launch(data_dir=folder / "data", vault_path=folder / "vault", extra_args=models)
    attachment = sidecar.upload("/api/media/attachments", LECTURE).check(201).json()
    request = {"attachment_id": attachment["attachment_id"], "language": "zh"}
    job = sidecar.post("/api/media/transcriptions", json=request).check(202).json()
    for event in sidecar.events(f"/api/media/transcriptions/{job['job_id']}/events"):
        if event.event == "Progress" and '"transcribing"' in event.data:
            return sidecar
    raise AssertionError("the transcription ended before it was seen to run")


def main(what: str, folder: Path) -> None:
    """Start the work, tell of it, and never end."""
    sidecar = begin_work(folder) if what == "work" else begin_transcription(folder)
    print(json.dumps([sidecar.pid, *descendants(sidecar.pid)]), flush=True)  # noqa: T201
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
