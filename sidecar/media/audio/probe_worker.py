"""The worker that looks into uploaded recordings, so that a malicious one can't harm the server."""

from pathlib import Path
from typing import Any

from sidecar.kernel.workers.process import Task, WorkerServer, WorkFailed
from sidecar.media.audio.decoding import UnreadableAudioError, measure, probe


def probe_recording(params: dict[str, Any], _: Task) -> dict[str, Any]:
    """Say what the file ``path`` is: ``container``, ``has_sound``, ``has_pictures``."""
    try:
        found = probe(Path(params["path"]))
    except UnreadableAudioError:
        raise WorkFailed("UNSUPPORTED_AUDIO_FORMAT") from None
    return {
        "container": found.container,
        "has_sound": found.has_sound,
        "has_pictures": found.has_pictures,
    }


def measure_recording(params: dict[str, Any], _: Task) -> dict[str, Any]:
    """Say how many seconds of sound the file ``path`` holds: ``duration``."""
    try:
        return {"duration": measure(Path(params["path"]))}
    except UnreadableAudioError:
        raise WorkFailed("UNSUPPORTED_AUDIO_FORMAT") from None


def main() -> None:
    """Serve until stdin ends."""
    WorkerServer({"probe": probe_recording, "measure": measure_recording}).run()
