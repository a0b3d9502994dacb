"""The worker that reads recordings for speaker models, and turns voices into vectors."""

import json
import sys
import time
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.kernel.workers.process import Task, WorkerServer, WorkFailed
from sidecar.media.audio.decoding import (
    SAMPLE_RATE,
    DecodedAudio,
    UnreadableAudioError,
    as_sound,
    decode,
)
from sidecar.media.audio.speech_pieces import find_speech
from sidecar.media.speakers.voice_model import VoiceModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DESCRIPTION: Final = "speaker.json"
LEAST_SPEECH_SECONDS: Final = 0.5
# Longer stretches make one vector of several minutes no better, and cost memory.
STRETCH_SECONDS: Final = 10.0
# More speech than this says nothing new of a voice.
MOST_SPEECH_SECONDS: Final = 60.0
# Short pauses are cut out, too: they say nothing of a voice.
SPEECH_SEARCH: Final = {
    "enabled": True,
    "threshold": 0.5,
    "min_speech_ms": 0,
    "min_silence_ms": 300,
    "speech_pad_ms": 50,
}
_BLOCK: Final = 1 << 20


class VoiceWorker:
    """Holds the speaker model between requests."""

    def __init__(self) -> None:
        self._loaded: tuple[str, VoiceModel] | None = None

    def write_wave(self, params: dict[str, Any], task: Task) -> dict[str, Any]:
        """Write the sound of the file ``path`` to ``target``: mono, 16 kHz, 16 bit.

        Returns its ``duration`` in seconds.
        """
        audio = _decoded(params["path"])
        with wave.open(params["target"], "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SAMPLE_RATE)
            for start in range(0, len(audio.samples), _BLOCK):
                task.check()
                file.writeframes(audio.samples[start : start + _BLOCK].astype("<i2").tobytes())
        return {"duration": audio.duration}

    def vector(self, params: dict[str, Any], task: Task) -> dict[str, Any]:
        """Return the ``vector`` of the voice in the file ``path`` by the model in the folder ``model``.

        It has length 1 and is that of the speech alone. Fails with ``AUDIO_TOO_SHORT`` for less than
        half a second of it. ``load_ms`` is None if the model was loaded already.
        """
        import numpy as np  # noqa: PLC0415 - heavy

        speech = _speech(_decoded(params["path"]))
        task.check()
        if len(speech) < LEAST_SPEECH_SECONDS * SAMPLE_RATE:
            raise WorkFailed("AUDIO_TOO_SHORT")
        began = time.monotonic()
        was_loaded = self._loaded is not None and self._loaded[0] == params["model"]
        model = self._model(params["model"])
        load_ms = None if was_loaded else round(1000 * (time.monotonic() - began))
        total = np.zeros(model.dimension)
        for stretch in _stretches(speech):
            task.check()
            found = model.vector(stretch)
            if found is not None:
                total += len(stretch) * found
        length = float(np.linalg.norm(total))
        if not np.isfinite(length) or length == 0:
            raise WorkFailed("AUDIO_TOO_SHORT")
        return {"vector": (total / length).tolist(), "load_ms": load_ms, "device": "cpu"}

    def _model(self, folder: str) -> VoiceModel:
        if self._loaded is not None and self._loaded[0] == folder:
            return self._loaded[1]
        self._loaded = None
        try:
            described = json.loads((Path(folder) / DESCRIPTION).read_text(encoding="utf-8"))
            model = VoiceModel(str(Path(folder) / described["file"]))
        except Exception as error:
            # A damaged file, an unknown operator: ONNX Runtime raises whatever it likes.
            sys.stderr.write(f"The model can't be loaded. {type(error).__name__}: {error}\n")
            raise WorkFailed("LOCAL_MODEL_NOT_INSTALLED") from error
        self._loaded = (folder, model)
        return model


def _decoded(path: str) -> DecodedAudio:
    if not Path(path).is_file():
        raise WorkFailed("ATTACHMENT_NOT_FOUND")
    try:
        return decode(Path(path))
    except UnreadableAudioError:
        raise WorkFailed("UNSUPPORTED_AUDIO_FORMAT") from None


def _speech(audio: DecodedAudio) -> "NDArray[np.float32]":
    """Return the speech of a recording without its pauses."""
    import numpy as np  # noqa: PLC0415 - heavy

    parts = [
        audio.samples[piece["start"] : piece["end"]]
        for piece in find_speech(audio.samples, SPEECH_SEARCH)
    ]
    return as_sound(np.concatenate(parts)) if parts else np.zeros(0, np.float32)


def _stretches(speech: "NDArray[np.float32]") -> "list[NDArray[np.float32]]":
    """Cut speech into equal stretches, and choose some all over it where there is more than enough."""
    count = max(1, round(len(speech) / SAMPLE_RATE / STRETCH_SECONDS))
    size = len(speech) // count
    most = round(MOST_SPEECH_SECONDS / STRETCH_SECONDS)
    chosen = range(count) if count <= most else [n * count // most for n in range(most)]
    return [speech[n * size : (n + 1) * size] for n in chosen]


def main() -> None:
    """Serve until stdin ends."""
    worker = VoiceWorker()
    WorkerServer({"write_wave": worker.write_wave, "vector": worker.vector}).run()
