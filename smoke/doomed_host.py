"""A host that is meant to be killed: it starts a sidecar, sets it to work, and waits.

Run as a module with ``--home DIR --models-dir DIR --mark TEXT [--executable PATH]`` it prints one
JSON line with the sidecar's pid once a transcription runs.
"""

import argparse
import json
import sys
import threading
from pathlib import Path

from smoke.recording_to_document import start_transcription, upload
from smoke.trial import RECORDINGS, Trial


def main() -> int:
    """Start the work, tell of it, and never end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--executable")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--models-dir", type=Path, required=True)
    parser.add_argument("--mark", required=True)
    options = parser.parse_args()
    trial = Trial.of(options.executable, options.home, options.models_dir)
    trial.mark = options.mark
    sidecar = trial.launch()
    attachment_id = upload(sidecar, RECORDINGS / "zh-lecture.flac")
    job_id = start_transcription(sidecar, attachment_id, "zh")
    for event in sidecar.events(f"/api/media/transcriptions/{job_id}/events"):
        if event.event in ("TranscriptionStarted", "Progress"):
            print(json.dumps({"pid": sidecar.pid, "job_id": job_id}), flush=True)
            threading.Event().wait()
    print("the transcription ended before it was seen to run", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
