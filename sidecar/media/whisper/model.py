"""Loads speech models, and tries something smaller where a device can't do what was asked of it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sidecar.kernel.workers.process import WorkFailed

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

# More threads than this slow a small model down.
MOST_THREADS: Final = 8
# On a GPU a batch costs little more than a single window; on a processor it costs as much as its parts.
GPU_BATCH: Final = 8

OUT_OF_MEMORY: Final = "CUDA_OUT_OF_MEMORY"
DEVICE_UNUSABLE: Final = "CUDA_UNAVAILABLE"

Load = Callable[..., "WhisperModel"]


@dataclass(frozen=True, slots=True)
class Setup:
    """Where and how a model runs. ``batch_size`` 1 is one window after the other."""

    device: str
    compute_type: str
    batch_size: int


def available_threads() -> int:
    """Return how many threads the recogniser gets: one for each physical core we may use."""
    import psutil  # noqa: PLC0415

    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    physical = psutil.cpu_count(logical=False) or usable
    return max(1, min(usable, physical, MOST_THREADS))


def gpu_count() -> int:
    """Return how many GPUs the recogniser could use."""
    import ctranslate2  # noqa: PLC0415 - takes a moment

    return int(ctranslate2.get_cuda_device_count())


def setups(device: str, compute_type: str, batch_size: int | None, gpus: int) -> Iterator[Setup]:
    """Yield what to try, the best first: the GPU with ever smaller batches, then the processor."""
    if device == "cuda" or (device == "auto" and gpus):
        # As the weights are stored, where the GPU can: old ones have no half precision.
        kind = "default" if compute_type == "auto" else compute_type
        batch = batch_size or GPU_BATCH
        while True:
            yield Setup("cuda", kind, batch)
            if batch == 1:
                break
            batch //= 2
    # Half precision is for GPUs; a processor would refuse it.
    on_processor = "int8" if "16" in compute_type or compute_type == "auto" else compute_type
    yield Setup("cpu", on_processor, batch_size or 1)


def failure_of_device(error: Exception) -> str | None:
    """Return why the GPU failed, None if it isn't the device's fault."""
    text = str(error).lower()
    if "out of memory" in text and ("cuda" in text or "cublas" in text):
        return OUT_OF_MEMORY
    if any(word in text for word in ("cuda", "cublas", "cudnn", "compute type")):
        return DEVICE_UNUSABLE
    return None


def load_whisper(path: str, setup: Setup) -> "WhisperModel":
    """Load the model in the folder *path*. Takes seconds."""
    from faster_whisper import WhisperModel  # noqa: PLC0415 - takes a second

    return WhisperModel(
        path,
        device=setup.device,
        compute_type=setup.compute_type,
        cpu_threads=available_threads(),
        local_files_only=True,
    )


class ModelCache:
    """Keeps the model that was used last."""

    def __init__(self, load: Load = load_whisper, gpus: Callable[[], int] = gpu_count) -> None:
        self._load = load
        self._gpus = gpus
        self._key: tuple[str, str, str] | None = None
        self._model: WhisperModel | None = None

    def setups(self, params: dict[str, Any]) -> list[Setup]:
        """Return what to try for a request, the best first."""
        device = params["device"]
        gpus = self._gpus() if device == "auto" else 0
        return list(setups(device, params["compute_type"], params["batch_size"], gpus))

    def get(self, path: str, setup: Setup) -> tuple["WhisperModel", int | None]:
        """Return the model, and how many milliseconds it took to load if it wasn't loaded.

        Raises what the device raises; a model that can't be loaded at all gives
        ``TRANSCRIPTION_MODEL_UNAVAILABLE``.
        """
        key = (path, setup.device, setup.compute_type)
        if self._model is not None and self._key == key:
            return self._model, None
        self.drop()
        began = time.monotonic()
        try:
            self._model = self._load(path, setup)
        except Exception as error:
            if setup.device != "cpu" and failure_of_device(error):
                raise
            # CTranslate2 and the tokenizer raise whatever they like. The reason stays in the log: it names folders.
            sys.stderr.write(f"The model can't be loaded. {type(error).__name__}: {error}\n")
            raise WorkFailed("TRANSCRIPTION_MODEL_UNAVAILABLE") from error
        self._key = key
        return self._model, round(1000 * (time.monotonic() - began))

    def drop(self) -> None:
        """Give back the memory of the model: the next one needs it, or it failed."""
        self._model, self._key = None, None
