"""The worker that turns speech into text with faster-whisper.

Keeps the model for the jobs that follow. A recording is decoded once, searched for speech once, and
only the speech is recognised, a stretch at a time; times are those of the whole recording.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar.kernel.workers.process import Task, WorkerServer, WorkFailed
from sidecar.media.audio.decoding import DecodedAudio, UnreadableAudioError, decode
from sidecar.media.audio.speech_pieces import Piece, find_speech, stretches
from sidecar.media.whisper.doubtful_text import believed
from sidecar.media.whisper.model import DEVICE_UNUSABLE, ModelCache, Setup, failure_of_device
from sidecar.media.whisper.recognition import (
    Recognition,
    RecognitionOptions,
    detect_language,
    script_prompt,
)

if TYPE_CHECKING:
    from faster_whisper import WhisperModel


class SpeechWorker:
    """Holds the model between requests."""

    def __init__(self, models: ModelCache | None = None) -> None:
        self._models = models or ModelCache()

    def transcribe(self, params: dict[str, Any], task: Task) -> dict[str, Any]:
        """Transcribe the file ``path`` with the model in the folder ``model``.

        ``language`` is a code, or None to have it detected; the rest is the profile's. Tells
        ``{"stage": "started", "duration", "device", "load_ms"}``, where the time is None if the model
        was loaded already, and then ``{"stage": "position", "seconds"}`` as the work goes on. A device
        that can't do it tells ``{"stage": "fell_back", "reason", "device"}``, and the work begins anew.
        """
        audio = _decode(Path(params["path"]))
        task.check()
        pieces: list[Piece] | None = None
        waiting = self._models.setups(params)
        while True:
            setup = waiting.pop(0)
            try:
                model, load_ms = self._models.get(params["model"], setup)
                task.check()
                started = {"duration": audio.duration, "device": setup.device, "load_ms": load_ms}
                task.progress({"stage": "started", **started})
                if pieces is None:
                    pieces = find_speech(audio.samples, params["vad"])
                return _recognised(params, task, model, setup, audio, pieces)
            except (RuntimeError, ValueError) as error:
                reason = failure_of_device(error) if waiting else None
                if reason is None:
                    raise
                self._models.drop()
                if reason == DEVICE_UNUSABLE:
                    waiting = [other for other in waiting if other.device != setup.device]
                sys.stderr.write(f"{setup} failed. {type(error).__name__}: {error}\n")
                task.progress({"stage": "fell_back", "reason": reason, "device": setup.device})


def _decode(path: Path) -> DecodedAudio:
    if not path.is_file():
        raise WorkFailed("ATTACHMENT_NOT_FOUND")
    try:
        return decode(path)
    except UnreadableAudioError:
        raise WorkFailed("UNSUPPORTED_AUDIO_FORMAT") from None


def _recognised(
    params: dict[str, Any],
    task: Task,
    model: "WhisperModel",
    setup: Setup,
    audio: DecodedAudio,
    pieces: list[Piece],
) -> dict[str, Any]:
    """Return the result of the request, telling how far the work is."""
    language: str | None = params["language"]
    segments: list[dict[str, Any]] = []
    recognition: Recognition | None = None
    told = ""
    for stretch in stretches(audio.samples, pieces):
        task.check()
        if recognition is None:
            language = language or detect_language(model, stretch.samples)
            task.check()
            options = _options(params, setup, language)
            recognition, told = Recognition(model, options), script_prompt(options)
        for segment in recognition.segments(stretch):
            task.check()
            segments.append(_plain(segment))
            task.progress({"stage": "position", "seconds": segments[-1]["end"]})
    kept = believed(segments, told)
    return {
        "language": language,
        "duration": audio.duration,
        "truncated": audio.truncated,
        "segments": kept.segments,
        "warnings": kept.warnings,
    }


def _options(params: dict[str, Any], setup: Setup, language: str) -> RecognitionOptions:
    return RecognitionOptions(
        language=language,
        word_timestamps=params["word_timestamps"],
        beam_size=params["beam_size"],
        batch_size=setup.batch_size,
        script=params["script"],
        initial_prompt=params["initial_prompt"],
        terms=tuple(params["terms"]),
        search_speech=params["vad"]["enabled"],
    )


def _plain(segment: Any) -> dict[str, Any]:
    """Return a segment as JSON values. NumPy's numbers become Python's."""
    return {
        "start": float(segment.start),
        "end": float(segment.end),
        "text": segment.text,
        "log_probability": float(segment.avg_logprob),
        "no_speech": float(segment.no_speech_prob),
        "words": [
            {
                "text": word.word,
                "start": float(word.start),
                "end": float(word.end),
                "probability": float(word.probability),
            }
            for word in segment.words or ()
        ],
    }


def main() -> None:
    """Serve until stdin ends."""
    WorkerServer({"transcribe": SpeechWorker().transcribe}).run()
