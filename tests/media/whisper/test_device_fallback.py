"""A GPU that fails, simulated by the errors that CTranslate2 raises, on a model that is real otherwise."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sidecar.kernel.workers.process import Task, WorkFailed
from sidecar.media.transcription.profiles import TranscriptionProfile
from sidecar.media.whisper.model import ModelCache, Setup, load_whisper, setups
from sidecar.media.whisper.worker import SpeechWorker
from tests.app_client import MODELS_DIR
from tests.media.samples import JFK, RATE, encoded, samples_of

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

NO_MEMORY = "CUDA failed with error out of memory"
NO_LIBRARY = "Library libcublas.so.12 is not found or cannot be loaded"


class Gpu:
    """Loads models as a GPU with little memory does: one is loaded, larger batches fail on it."""

    def __init__(
        self,
        *,
        fails_at_load: str | None = None,
        error: type[Exception] = RuntimeError,
        largest_batch: int = 0,
    ) -> None:
        self.fails_at_load = fails_at_load
        self.error = error
        self.largest_batch = largest_batch
        self.tried: list[Setup] = []

    def load(self, path: str, setup: Setup) -> "WhisperModel":
        """Load a model; what CUDA can't do is refused in its words."""
        self.tried.append(setup)
        if setup.device == "cpu":
            return load_whisper(path, setup)
        if self.fails_at_load is not None:
            raise self.error(self.fails_at_load)
        model = load_whisper(path, replace(setup, device="cpu", compute_type="int8"))
        if setup.batch_size > self.largest_batch:
            model.model = _OutOfMemory(model.model)
        return model


class _OutOfMemory:
    """Fails as soon as something is computed with it, not when it is loaded."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if name in ("encode", "generate", "detect_language"):
            raise RuntimeError(NO_MEMORY)
        return getattr(self._model, name)


def _transcribe(
    tmp_path: Path, gpu: Gpu, **profile: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    recording = tmp_path / "talk.flac"
    recording.write_bytes(encoded(samples_of(JFK)[: 4 * RATE], "flac"))
    told: list[dict[str, Any]] = []
    task = Task(1, lambda message: told.append(message["data"]))
    worker = SpeechWorker(ModelCache(gpu.load, lambda: 1))
    params = {
        **TranscriptionProfile(beam_size=1, **profile).model_dump(),
        "path": str(recording),
        "model": str(MODELS_DIR / "whisper-base"),
        "language": "en",
        "word_timestamps": False,
        "terms": [],
    }
    return worker.transcribe(params, task), told


def test_a_batch_that_is_too_large_is_made_smaller(tmp_path: Path) -> None:
    gpu = Gpu(largest_batch=2)
    result, told = _transcribe(tmp_path, gpu)
    assert "fellow Americans" in result["segments"][0]["text"]
    assert [setup.batch_size for setup in gpu.tried] == [8, 4, 2]
    fallbacks = [step for step in told if step["stage"] == "fell_back"]
    assert [step["reason"] for step in fallbacks] == ["CUDA_OUT_OF_MEMORY"] * 2
    started = [step["device"] for step in told if step["stage"] == "started"]
    assert started[-1] == "cuda"


def test_a_gpu_without_memory_is_left_for_the_processor(tmp_path: Path) -> None:
    gpu = Gpu(fails_at_load=NO_MEMORY)
    result, told = _transcribe(tmp_path, gpu, batch_size=2)
    assert "fellow Americans" in result["segments"][0]["text"]
    assert [(setup.device, setup.batch_size) for setup in gpu.tried] == [
        ("cuda", 2), ("cuda", 1), ("cpu", 2),
    ]  # fmt: skip
    assert [step["device"] for step in told if step["stage"] == "started"] == ["cpu"]


def test_a_missing_library_is_no_want_of_memory(tmp_path: Path) -> None:
    gpu = Gpu(fails_at_load=NO_LIBRARY)
    _, told = _transcribe(tmp_path, gpu)
    assert [setup.device for setup in gpu.tried] == ["cuda", "cpu"]
    assert [step["reason"] for step in told if step["stage"] == "fell_back"] == ["CUDA_UNAVAILABLE"]


def test_a_number_format_that_a_gpu_lacks_is_left_for_the_processor(tmp_path: Path) -> None:
    # In CTranslate2's own words, which it raises as a ValueError.
    unsupported = (
        "Requested float16 compute type, but the target device or backend do not support efficient "
        "float16 computation."
    )
    gpu = Gpu(fails_at_load=unsupported, error=ValueError)
    _, told = _transcribe(tmp_path, gpu, compute_type="float16", batch_size=1)
    assert [step["reason"] for step in told if step["stage"] == "fell_back"] == ["CUDA_UNAVAILABLE"]
    assert gpu.tried[-1] == Setup("cpu", "int8", 1)


def test_a_model_that_no_device_can_load_is_unavailable(tmp_path: Path) -> None:
    class Broken(Gpu):
        def load(self, path: str, setup: Setup) -> "WhisperModel":
            raise RuntimeError("Unsupported model binary version")

    with pytest.raises(WorkFailed, match="TRANSCRIPTION_MODEL_UNAVAILABLE"):
        _transcribe(tmp_path, Broken())


@pytest.mark.parametrize(
    ("profile", "gpus", "expected"),
    [
        (("auto", "auto", None), 0, [("cpu", "int8", 1)]),
        (("cpu", "float32", 4), 1, [("cpu", "float32", 4)]),
        (("auto", "int8_float16", 1), 1, [("cuda", "int8_float16", 1), ("cpu", "int8", 1)]),
        (("cuda", "auto", 2), 0, [("cuda", "default", 2), ("cuda", "default", 1), ("cpu", "int8", 2)]),
    ],
)  # fmt: skip
def test_what_is_tried_in_turn(
    profile: tuple[str, str, int | None], gpus: int, expected: list[tuple[str, str, int]]
) -> None:
    assert list(setups(*profile, gpus)) == [Setup(*setup) for setup in expected]
