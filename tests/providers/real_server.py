"""Starts the real model server for tests."""

import contextlib
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app_client import MODELS_DIR
from tests.providers import llama_server

FOLDER = MODELS_DIR / "tests/chat-server"
START_SECONDS = 60

needs_real_server = pytest.mark.skipif(
    not any(FOLDER.glob("*.gguf")), reason="dev.py fetches this server on Linux on x86-64 alone"
)


def _first_line(process: subprocess.Popen[str]) -> str:
    told: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: told.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    return told.get(timeout=START_SECONDS).strip()


@contextlib.contextmanager
def real_server(folder: Path, *, embeddings: bool = False) -> Iterator[str]:
    """Serve the model until the block ends; yields the base URL. What it says goes into *folder*.

    With *embeddings* it gives vectors instead of answers.
    """
    errors = folder / "stderr"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [
                *(sys.executable, str(Path(llama_server.__file__)), str(FOLDER)),
                *(["embeddings"] if embeddings else []),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        url = _first_line(process)
        assert url.startswith("http://"), errors.read_text()
        yield url
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(START_SECONDS)
        finally:
            process.kill()
