"""The server's side of the speech worker."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.processes import own_command
from sidecar.kernel.workers.client import WorkerPool, WorkerSpec
from sidecar.media.transcription.profiles import TranscriptionProfile

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
class FellBack:
    """A device could not do it, for this reason (a code), and another is tried."""

    reason: str
    device: str


@dataclass(frozen=True, slots=True)
class Position:
    """The recording is done up to here, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Recognised:
    """The result. ``segments`` are the recogniser's own, not yet put in order; ``warnings`` codes."""

    language: str | None
    duration: float
    truncated: bool
    segments: list[dict[str, Any]]
    warnings: list[str]


class Whisper:
    """Runs faster-whisper in worker processes, one recording in each at a time."""

    def __init__(self, workers: WorkerPool, count: int = 1) -> None:
        self._workers = [workers.add(spec) for spec in _specs(count)]
        self._busy: Counter[int] = Counter()

    async def transcribe(
        self,
        recording: Path,
        model: Path,
        profile: TranscriptionProfile,
        *,
        language: str | None,
        word_timestamps: bool,
        terms: Sequence[str] = (),
    ) -> AsyncGenerator[Started | FellBack | Position | Recognised, None]:
        """Yield how the work goes on, and the result last.

        *terms* are words that may be listened for, the rarest first. Raises
        ``UNSUPPORTED_AUDIO_FORMAT``, ``TRANSCRIPTION_MODEL_UNAVAILABLE``, ``ATTACHMENT_NOT_FOUND``, or
        the worker's own failures. Closing it ends the work.
        """
        params = {
            "path": str(recording),
            "model": str(model),
            "language": language,
            "word_timestamps": word_timestamps,
            "terms": list(terms),
            **profile.model_dump(
                include={
                    "device",
                    "compute_type",
                    "beam_size",
                    "batch_size",
                    "vad",
                    "script",
                    "initial_prompt",
                }
            ),
        }
        number = min(range(len(self._workers)), key=lambda index: self._busy[index])
        self._busy[number] += 1
        try:
            async with aclosing(self._workers[number].request("transcribe", params)) as messages:
                async for message in messages:
                    yield _step(message)
        finally:
            self._busy[number] -= 1


def _specs(count: int) -> Iterator[WorkerSpec]:
    yield SPEECH_WORKER
    for number in range(2, count + 1):
        command = tuple(own_command("worker", SPEECH_WORKER.name))
        yield WorkerSpec(f"{SPEECH_WORKER.name}-{number}", command=command)


def _step(message: dict[str, Any]) -> Started | FellBack | Position | Recognised:
    data = message["data"]
    if message["type"] == "result":
        return Recognised(**data)
    if data["stage"] == "started":
        return Started(data["duration"], data["device"], data["load_ms"])
    if data["stage"] == "fell_back":
        return FellBack(data["reason"], data["device"])
    return Position(data["seconds"])
