"""The worker processes that this program can be: ``sidecar worker <name>``."""

from importlib import import_module
from typing import Final

WORKERS: Final = {
    "documents": "sidecar.documents.worker",
    "embedding": "sidecar.retrieval.models.worker",
    "export": "sidecar.export.worker",
    "probe": "sidecar.media.audio.probe_worker",
    "speech": "sidecar.media.whisper.worker",
    "voices": "sidecar.media.speakers.voice_worker",
}
"""Worker name → the module whose ``main()`` serves it."""

PLAIN_SOURCES: Final = (
    "sidecar",
    "sidecar.kernel",
    "sidecar.kernel.workers",
    "sidecar.kernel.workers.process",
    "sidecar.media",
    "sidecar.media.speakers",
    "sidecar.media.speakers.diarization_worker",
    "sidecar.media.speakers.fbank",
    "sidecar.media.speakers.voice_model",
    "sidecar.privacy",
)
"""The modules that interpreters other than our own run too: shipped as source, and needing no other of ours."""


def plain_source_files() -> list[str]:
    """Return the paths of the plain sources, relative to the folder that our packages lie in."""
    packages = {name.rpartition(".")[0] for name in PLAIN_SOURCES}
    return [
        name.replace(".", "/") + ("/__init__.py" if name in packages else ".py")
        for name in PLAIN_SOURCES
    ]


def run_worker(name: str) -> None:
    """Serve as the worker *name* until stdin ends; KeyError for an unknown name."""
    import_module(WORKERS[name]).main()
