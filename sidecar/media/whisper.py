"""The server's side of the speech worker."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.workers import Worker, WorkerPool, WorkerSpec

SPEECH_WORKER: Final = WorkerSpec("speech")


@dataclass(frozen=True, slots=True)
class Started:
    """The model is loaded and the recording read. ``duration`` in seconds.

    ``device`` is the one that the model runs on; ``load_ms`` is None if it was loaded already.
    """

    duration: float
    device: str
    load_ms: int | None


@dataclass(frozen=True, slots=True)
class Position:
    """The recording is done up to here, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Recognised:
    """The result. ``segments`` are the recogniser's own, not yet put in order."""

    language: str | None
    duration: float
    truncated: bool
    segments: list[dict[str, Any]]


class Whisper:
    """Runs faster-whisper in a worker process, one recording at a time."""

    def __init__(self, workers: WorkerPool) -> None:
        self._worker: Worker = workers.add(SPEECH_WORKER)

    async def transcribe(
        self, recording: Path, model: Path, *, language: str | None, word_timestamps: bool
    ) -> AsyncGenerator[Started | Position | Recognised, None]:
        """Yield how the work goes on, and the result last.

        Raises ``UNSUPPORTED_AUDIO_FORMAT``, ``TRANSCRIPTION_MODEL_UNAVAILABLE``,
        ``ATTACHMENT_NOT_FOUND``, or the worker's own failures. Closing it ends the work.
        """
        params = {
            "path": str(recording),
            "model": str(model),
            "language": language,
            "word_timestamps": word_timestamps,
        }
        async with aclosing(self._worker.request("transcribe", params)) as messages:
            async for message in messages:
                data = message["data"]
                if message["type"] == "result":
                    yield Recognised(**data)
                elif data["stage"] == "started":
                    yield Started(data["duration"], data["device"], data["load_ms"])
                else:
                    yield Position(data["seconds"])
