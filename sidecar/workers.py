"""The worker processes that this program can be: ``sidecar worker <name>``."""

from importlib import import_module
from typing import Final

WORKERS: Final = {
    "documents": "sidecar.documents.worker",
    "embedding": "sidecar.retrieval.embedding_worker",
    "export": "sidecar.export.worker",
    "probe": "sidecar.media.probe_worker",
    "speech": "sidecar.media.whisper_worker",
}
"""Worker name → the module whose ``main()`` serves it."""


def run_worker(name: str) -> None:
    """Serve as the worker *name* until stdin ends; KeyError for an unknown name."""
    import_module(WORKERS[name]).main()
