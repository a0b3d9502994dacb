"""The worker that tells speakers apart with pyannote.audio.

Shipped as plain source and run by the interpreter of the managed runtime, or by one of the user's:
see :data:`sidecar.workers.PLAIN_SOURCES`. A pipeline is loaded once and kept for what follows.
"""

import json
import os
import sys
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.kernel.workers.process import Task, WorkerServer, WorkFailed, package_version
from sidecar.media.speakers.fbank import fbank
from sidecar.media.speakers.voice_model import FEWEST_FRAMES, VoiceModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DESCRIPTION: Final = "diarization.json"
PACKAGES: Final = ("pyannote.audio", "torch", "onnxruntime", "numpy")
# What the code below was written for: distribution → its major version, None for any.
NEEDED: Final = {"pyannote.audio": "4", "torch": None, "onnxruntime": None}
OUT_OF_MEMORY: Final = "CUDA_OUT_OF_MEMORY"
DEVICE_UNUSABLE: Final = "CUDA_UNAVAILABLE"
SAMPLE_RATE: Final = 16_000
MOST_THREADS: Final = 8
BATCH: Final = {"cpu": 8, "cuda": 32}
# How far the work is when a step begins, and the part of it that the step is.
_STEPS: Final = {"segmentation": (0.0, 0.35), "embeddings": (0.35, 0.6)}


class DiarizationWorker:
    """Holds the pipeline between requests."""

    def __init__(self) -> None:
        self._loaded: tuple[str, str, Any] | None = None

    def diarize(self, params: dict[str, Any], task: Task) -> dict[str, Any]:
        """Tell apart who speaks in the file ``wav`` (mono, 16 kHz, 16 bit).

        ``model`` is the folder of a pipeline, ``device`` is cpu or cuda, ``speakers`` how many there
        are or None. Tells ``{"stage": "started", "device", "load_ms"}``, where the time is None if
        the pipeline was loaded already; ``{"stage": "position", "fraction"}``; and, where a device
        can't do it, ``{"stage": "fell_back", "reason", "device"}``. Returns ``turns`` that don't
        overlap and ``overlapping`` ones that may, each with start and end in seconds and a speaker.
        """
        _refuse_old_packages()
        samples = _read(params["wav"])
        task.check()
        device = params["device"]
        while True:
            try:
                return self._diarized(samples, params, device, task)
            except (RuntimeError, AssertionError) as error:
                reason = _reason(error) if device == "cuda" else None
                if reason is None:
                    raise
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
            # Outside the handler, which keeps the frames and with them the memory of the device.
            self._forget()
            device = "cpu"
            task.progress({"stage": "fell_back", "reason": reason, "device": device})

    def _diarized(
        self, samples: "NDArray[np.float32]", params: dict[str, Any], device: str, task: Task
    ) -> dict[str, Any]:
        pipeline, load_ms = self._pipeline(params["model"], device, task)
        task.check()
        task.progress({"stage": "started", "device": device, "load_ms": load_ms})
        if not len(samples):
            return {"turns": [], "overlapping": []}
        import torch  # noqa: PLC0415 - heavy

        sound = {"waveform": torch.from_numpy(samples)[None], "sample_rate": SAMPLE_RATE}
        output = pipeline(sound, num_speakers=params["speakers"], hook=_hook(task)).serialize()
        return {"turns": output["exclusive_diarization"], "overlapping": output["diarization"]}

    def _pipeline(self, folder: str, device: str, task: Task) -> tuple[Any, int | None]:
        if self._loaded is not None and self._loaded[:2] == (folder, device):
            return self._loaded[2], None
        self._forget()
        began = time.monotonic()
        pipeline = _load(Path(folder), device, task)
        self._loaded = (folder, device, pipeline)
        return pipeline, round(1000 * (time.monotonic() - began))

    def _forget(self) -> None:
        """Give back the pipeline's memory."""
        self._loaded = None
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


class VoiceEmbedding:
    """A speaker model as pyannote's pipeline asks for it."""

    sample_rate = SAMPLE_RATE
    metric = "cosine"
    min_num_samples = FEWEST_FRAMES * SAMPLE_RATE // 100

    def __init__(self, path: str) -> None:
        self._model = VoiceModel(path)
        self.dimension = self._model.dimension

    def __call__(self, waveforms: Any, masks: Any = None) -> "NDArray[np.float64]":
        """Return a row for each of *waveforms* (batch, 1, samples), of what its mask lets through.

        A row is NaN where that is too little.
        """
        import numpy as np  # noqa: PLC0415 - heavy

        sound = waveforms.numpy(force=True)[:, 0]
        rows = np.full((len(sound), self.dimension), np.nan)
        features, heard = np.zeros((0, 0), np.float32), None
        for number, samples in enumerate(sound):
            # The same stretch comes once for each of its speakers.
            if heard is None or not np.array_equal(samples, heard):
                features, heard = fbank(samples), samples
            chosen = features
            if masks is not None:
                mask = masks[number].numpy(force=True)
                nearest = np.arange(len(features)) * len(mask) // max(1, len(features))
                chosen = features[mask[nearest] > 0.5]
            vector = self._model.vector_of_features(chosen)
            if vector is not None:
                rows[number] = vector
        return rows


def _load(folder: Path, device: str, task: Task) -> Any:
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        import torch  # noqa: PLC0415 - heavy

        task.check()
        torch.set_num_threads(_threads())
        pipeline = _build(folder, description, device)
    except ImportError:
        sys.stderr.write("a package of the runtime can't be imported\n")
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        raise _unusable(error) from error
    except Exception as error:
        # Unpickling, ONNX Runtime and torch raise whatever they like for weights that are none.
        if type(error).__name__ in ("UnpicklingError", "InvalidProtobuf", "Fail", "NoSuchFile"):
            raise _unusable(error) from error
        if isinstance(error, RuntimeError):
            raise _unusable(error) from error
        raise
    # Apart from the rest: this is where a device that can't be used shows.
    return pipeline.to(torch.device(device))


def _unusable(error: Exception) -> WorkFailed:
    sys.stderr.write(f"The pipeline can't be loaded. {type(error).__name__}: {error}\n")
    return WorkFailed("DIARIZATION_MODEL_UNAVAILABLE")


def _build(folder: Path, description: dict[str, Any], device: str) -> Any:
    if "pipeline" in description:
        from pyannote.audio import Pipeline  # noqa: PLC0415 - heavy

        pipeline = Pipeline.from_pretrained(str(folder / description["pipeline"]))
        if pipeline is None:
            raise ValueError("no pipeline")
        return pipeline
    from pyannote.audio.core.plda import PLDA  # noqa: PLC0415 - heavy
    from pyannote.audio.pipelines import speaker_diarization  # noqa: PLC0415 - heavy

    class NoPlda(PLDA):  # type: ignore[misc]
        """Stands where the pipeline wants one whose clustering needs none."""

        def __init__(self) -> None:
            """Load nothing."""

    voice = VoiceEmbedding(str(folder / description["embedding"]))
    # The pipeline knows embeddings by their names alone; ours is none of those.
    speaker_diarization.PretrainedSpeakerEmbedding = lambda *_, **__: voice
    pipeline = speaker_diarization.SpeakerDiarization(
        segmentation=str(folder / description["segmentation"]),
        embedding=description["embedding"],
        plda=NoPlda(),
        clustering="AgglomerativeClustering",
        embedding_exclude_overlap=True,
        segmentation_batch_size=BATCH[device],
        embedding_batch_size=BATCH[device],
    )
    pipeline.instantiate(
        {
            "segmentation": {"min_duration_off": description["min_duration_off"]},
            "clustering": description["clustering"],
        }
    )
    return pipeline


def _hook(task: Task) -> Callable[..., None]:
    """Return what the pipeline calls at each batch: it tells how far the work is, and ends it."""

    def hook(step: str, _: Any, *, total: int = 0, completed: int = 0, **__: Any) -> None:
        task.check()
        if step in _STEPS and total:
            start, part = _STEPS[step]
            # More batches are counted than there are.
            fraction = start + part * min(1.0, completed / total)
            task.progress({"stage": "position", "fraction": round(fraction, 3)})

    return hook


def _read(path: str) -> "NDArray[np.float32]":
    import numpy as np  # noqa: PLC0415 - heavy

    try:
        with wave.open(path, "rb") as file:
            shape = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            if shape != (1, 2, SAMPLE_RATE):
                raise WorkFailed("UNSUPPORTED_AUDIO_FORMAT")
            data = file.readframes(file.getnframes())
    except (OSError, wave.Error, EOFError):
        raise WorkFailed("ATTACHMENT_NOT_FOUND") from None
    samples: NDArray[np.float32] = np.frombuffer(data, "<i2").astype(np.float32) / 32768.0
    return samples


def _refuse_old_packages() -> None:
    for name, major in NEEDED.items():
        version = package_version(name)
        if version is None or (major is not None and version.split(".")[0] != major):
            sys.stderr.write(f"{name} is {version}, wanted is {major or 'any'}\n")
            raise WorkFailed("RUNTIME_OUTDATED")


def _reason(error: Exception) -> str | None:
    """Return why a CUDA device could not do it; None for a failure that has nothing to do with it."""
    text = f"{type(error).__name__} {error}".lower()
    if "out of memory" in text or "outofmemory" in text:
        return OUT_OF_MEMORY
    return DEVICE_UNUSABLE if any(word in text for word in ("cuda", "cudnn", "cublas")) else None


def _threads() -> int:
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(usable, MOST_THREADS))


def main() -> None:
    """Serve until stdin ends."""
    # Before the first import of the packages: nothing is told to anybody, and nothing is looked up.
    os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
    os.environ["HF_HUB_OFFLINE"] = "1"
    WorkerServer({"diarize": DiarizationWorker().diarize}, packages=PACKAGES).run()
