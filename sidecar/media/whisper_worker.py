"""The worker that turns speech into text with faster-whisper.

Loads a model once and keeps it for the jobs that follow. A recording is decoded once, searched for
speech once, and only the speech is recognised; times are those of the whole recording.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.kernel.worker_process import Task, WorkerServer, WorkFailed
from sidecar.media.audio import SAMPLE_RATE, DecodedAudio, UnreadableAudioError, decode

if TYPE_CHECKING:
    import numpy as np
    from faster_whisper import WhisperModel
    from numpy.typing import NDArray

BEAM_SIZE: Final = 5
# More threads than this slow a small model down.
MOST_THREADS: Final = 8
# The same sentence so many times on end is the recogniser going round in circles.
LOOP_LENGTH: Final = 3

# Makes the recogniser write Mandarin in simplified characters and with punctuation. The times keep
# it from running all sentences of half a minute together, as it does after a bare text.
SIMPLIFIED_PROMPT: Final = "以下是普通话的句子。"
PROMPT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: str
    model: "WhisperModel"


@dataclass(frozen=True, slots=True)
class _Speech:
    """The speech of a recording, its pauses cut out, and where its pieces were (in samples)."""

    samples: "NDArray[np.float32]"
    pieces: list[dict[str, int]]


def available_threads() -> int:
    """Return how many threads the recogniser gets: one for each physical core we may use."""
    import psutil  # noqa: PLC0415

    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    physical = psutil.cpu_count(logical=False) or usable
    return max(1, min(usable, physical, MOST_THREADS))


class SpeechWorker:
    """Holds the model between requests."""

    def __init__(self) -> None:
        self._loaded: _Loaded | None = None

    def transcribe(self, params: dict[str, Any], task: Task) -> dict[str, Any]:
        """Transcribe the file ``path`` with the model in the folder ``model``.

        ``language`` is a code, or None to have it detected; ``word_timestamps`` is a flag. Tells
        ``{"stage": "started", "duration", "device", "load_ms"}``, where the time is None if the model
        was loaded already, and then ``{"stage": "position", "seconds"}`` as the
        work goes on.
        """
        audio = _decode(Path(params["path"]))
        task.check()
        model, load_ms = self._model(params["model"])
        task.check()
        started = {"duration": audio.duration, "device": model.model.device, "load_ms": load_ms}
        task.progress({"stage": "started", **started})
        speech = _find_speech(audio)
        task.check()
        language, segments = params["language"], []
        if speech.pieces:
            language = language or _detect_language(model, speech)
            task.check()
            for segment in _recognise(
                model, speech, language, word_timestamps=params["word_timestamps"]
            ):
                task.check()
                segments.append(_plain(segment))
                task.progress({"stage": "position", "seconds": segments[-1]["end"]})
        return {
            "language": language,
            "duration": audio.duration,
            "truncated": audio.truncated,
            "segments": segments,
        }

    def _model(self, path: str) -> tuple["WhisperModel", int | None]:
        """Return the model, and how many milliseconds it took to load if it wasn't loaded."""
        if self._loaded is not None and self._loaded.path == path:
            return self._loaded.model, None
        self._loaded = None  # gives back the old one's memory before the new one needs it
        began = time.monotonic()
        self._loaded = _Loaded(path, _load(path))
        return self._loaded.model, round(1000 * (time.monotonic() - began))


def _decode(path: Path) -> DecodedAudio:
    if not path.is_file():
        raise WorkFailed("ATTACHMENT_NOT_FOUND")
    try:
        return decode(path)
    except UnreadableAudioError:
        raise WorkFailed("UNSUPPORTED_AUDIO_FORMAT") from None


def _load(path: str) -> "WhisperModel":
    from faster_whisper import WhisperModel  # noqa: PLC0415 - takes a second

    try:
        return WhisperModel(
            path,
            device="cpu",
            compute_type="int8",
            cpu_threads=available_threads(),
            local_files_only=True,
        )
    except Exception as error:
        # CTranslate2 and the tokenizer raise whatever they like. The reason stays in the log: it names folders.
        sys.stderr.write(f"The model can't be loaded. {type(error).__name__}: {error}\n")
        raise WorkFailed("TRANSCRIPTION_MODEL_UNAVAILABLE") from error


def _find_speech(audio: DecodedAudio) -> _Speech:
    import numpy as np  # noqa: PLC0415
    from faster_whisper.vad import VadOptions, collect_chunks, get_speech_timestamps  # noqa: PLC0415

    pieces = get_speech_timestamps(audio.samples, VadOptions())
    if not pieces:
        return _Speech(audio.samples[:0], [])
    parts, _ = collect_chunks(audio.samples, pieces)
    return _Speech(np.concatenate(parts), pieces)


def _detect_language(model: "WhisperModel", speech: _Speech) -> str:
    if not model.model.is_multilingual:
        return "en"
    language: str = model.detect_language(audio=speech.samples)[0]
    return language


def _recognise(
    model: "WhisperModel", speech: _Speech, language: str, *, word_timestamps: bool
) -> Iterator[Any]:
    """Yield segments with times of the whole recording."""
    from faster_whisper.transcribe import restore_speech_timestamps  # noqa: PLC0415

    def run(samples: "NDArray[np.float32]", **options: Any) -> Iterator[Any]:
        segments, _ = model.transcribe(
            samples,
            language=language,
            beam_size=BEAM_SIZE,
            word_timestamps=word_timestamps,
            **options,
        )
        yield from segments

    return iter(
        restore_speech_timestamps(
            _without_loops(model, speech, language, run), speech.pieces, SAMPLE_RATE
        )
    )


def _without_loops(
    model: "WhisperModel", speech: _Speech, language: str, run: Callable[..., Iterator[Any]]
) -> Iterator[Any]:
    """Yield segments; where the recogniser goes round in circles, go on without what it said before.

    What it has said helps it with names and terms, but it can also get stuck on it for minutes.
    """
    is_mandarin = language == "zh"
    prompt = simplified_prompt(model) if is_mandarin else None
    previous, repeats = "", 0
    for segment in run(speech.samples, initial_prompt=prompt, condition_on_previous_text=True):
        repeats = repeats + 1 if segment.text.strip() == previous else 1
        previous = segment.text.strip()
        if repeats < LOOP_LENGTH:
            yield segment
            continue
        offset = segment.start
        rest = speech.samples[int(offset * SAMPLE_RATE) :]
        hint = SIMPLIFIED_PROMPT if is_mandarin else None
        for later in run(rest, hotwords=hint, condition_on_previous_text=False):
            yield _shifted(later, offset)
        return


def simplified_prompt(model: "WhisperModel") -> list[int]:
    """Return the tokens that Mandarin is prompted with."""
    from faster_whisper.tokenizer import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer(
        model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language="zh"
    )
    end = tokenizer.timestamp_begin + round(PROMPT_SECONDS / model.time_precision)
    return [tokenizer.timestamp_begin, *tokenizer.encode(SIMPLIFIED_PROMPT), end]


def _shifted(segment: Any, seconds: float) -> Any:
    segment.start += seconds
    segment.end += seconds
    for word in segment.words or ():
        word.start += seconds
        word.end += seconds
    return segment


def _plain(segment: Any) -> dict[str, Any]:
    """Return a segment as JSON values. NumPy's numbers become Python's."""
    return {
        "start": float(segment.start),
        "end": float(segment.end),
        "text": segment.text,
        "log_probability": float(segment.avg_logprob),
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
