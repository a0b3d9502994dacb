"""The server's side of the worker that reads recordings for speaker models."""

from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.client import WorkerPool, WorkerSpec

VOICE_WORKER: Final = WorkerSpec("voices")


@dataclass(frozen=True, slots=True)
class Voice:
    """A vector of length 1; ``load_ms`` is None if the model was loaded already."""

    vector: tuple[float, ...]
    device: str
    load_ms: int | None


class Voices:
    """Runs in the program itself: it needs no managed runtime."""

    def __init__(self, workers: WorkerPool) -> None:
        self._worker = workers.add(VOICE_WORKER)

    async def write_wave(self, recording: Path, target: Path) -> float:
        """Write a recording's sound, mono and at 16 kHz, and return its seconds."""
        answer = await self._ask("write_wave", {"path": str(recording), "target": str(target)})
        return float(answer["duration"])

    async def voice(self, recording: Path, model: Path) -> Voice:
        """Return the voice of a recording by the model in the folder *model*.

        Raises ``AUDIO_TOO_SHORT`` for less than half a second of speech, ``UNSUPPORTED_AUDIO_FORMAT``,
        ``ATTACHMENT_NOT_FOUND`` or ``LOCAL_MODEL_NOT_INSTALLED`` for a model that can't be loaded.
        """
        answer = await self._ask("vector", {"path": str(recording), "model": str(model)})
        return Voice(tuple(answer["vector"]), answer["device"], answer["load_ms"])

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        async with aclosing(self._worker.request(method, params)) as messages:
            async for message in messages:
                if message["type"] == "result":
                    data: dict[str, Any] = message["data"]
                    return data
        raise ProjectError("WORKER_CRASHED")
