"""What a loaded Whisper model makes of the speech of a recording."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from sidecar.media.audio.decoding import SAMPLE_RATE
from sidecar.media.audio.speech_pieces import Stretch
from sidecar.media.whisper.second_look import SecondLook

if TYPE_CHECKING:
    import numpy as np
    from faster_whisper import WhisperModel
    from faster_whisper.tokenizer import Tokenizer
    from numpy.typing import NDArray

# The same sentence so many times on end is the recogniser going round in circles.
LOOP_LENGTH: Final = 3
# Half a minute is what the model hears at once.
WINDOW_SECONDS: Final = 30

# Makes the recogniser write Mandarin in these characters and with punctuation. The times keep it
# from running all sentences of half a minute together, as it does after a bare text.
SCRIPT_PROMPTS: Final = {
    "simplified": "以下是普通话的句子。",
    "traditional": "以下是國語的句子。",
    "as_heard": "",
}
PROMPT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class RecognitionOptions:
    """How to recognise. ``terms`` are those that may be listened for, the rarest first."""

    language: str
    word_timestamps: bool
    beam_size: int
    batch_size: int
    script: str
    initial_prompt: str | None
    terms: tuple[str, ...]
    search_speech: bool


def script_prompt(options: RecognitionOptions) -> str:
    """Return the sentence that makes the recogniser write in the script that is wanted, or ""."""
    return SCRIPT_PROMPTS[options.script] if options.language == "zh" else ""


def timed_prompt(model: "WhisperModel", language: str, text: str) -> list[int]:
    """Return the tokens of *text* as a passage of its own that ended before the recording."""
    tokenizer = tokenizer_of(model, language)
    end = tokenizer.timestamp_begin + round(PROMPT_SECONDS / model.time_precision)
    return [tokenizer.timestamp_begin, *tokenizer.encode(text), end]


def prompted(model: "WhisperModel", prompt: list[int]) -> "WhisperModel":
    """Return a model that hears *prompt* before what was said, also where it would have forgotten it.

    It forgets all that was before, its initial prompt too, behind a window that it was unsure of; and
    the windows of a batch have no initial prompt.
    """
    result: Any = copy.copy(model)
    room = model.max_length // 2 - 1 - len(prompt)

    def get_prompt(tokenizer: "Tokenizer", previous: list[int], **options: Any) -> list[int]:
        if previous[: len(prompt)] != prompt:
            previous = [*prompt, *(previous[-room:] if room > 0 else [])]
        tokens: list[int] = model.get_prompt(tokenizer, previous, **options)
        return tokens

    result.get_prompt = get_prompt
    return cast("WhisperModel", result)


def tokenizer_of(model: "WhisperModel", language: str) -> "Tokenizer":
    """Return the model's tokenizer for a language."""
    from faster_whisper.tokenizer import Tokenizer  # noqa: PLC0415

    return Tokenizer(
        model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=language
    )


class Recognition:
    """One recording on one model."""

    def __init__(self, model: "WhisperModel", options: RecognitionOptions) -> None:
        self._options = options
        text = script_prompt(options) + (options.initial_prompt or "")
        self._prompt = timed_prompt(model, options.language, text) if text else None
        self._model = prompted(model, self._prompt) if self._prompt else model
        self._second_look = (
            SecondLook(tokenizer_of(model, options.language), options.terms, self._again)
            if options.terms
            else None
        )

    def segments(self, stretch: Stretch) -> Iterator[Any]:
        """Yield the segments of a stretch, with times of the whole recording."""
        from faster_whisper.transcribe import restore_speech_timestamps  # noqa: PLC0415

        if self._options.batch_size > 1:
            found = self._in_batches(stretch.samples)
        else:
            found = self._without_loops(stretch.samples)
        if self._second_look is not None:
            found = self._second_look.at(stretch.samples, found)
        return iter(restore_speech_timestamps(found, stretch.pieces, SAMPLE_RATE))

    def _run(self, samples: "NDArray[np.float32]", **options: Any) -> Iterator[Any]:
        segments, _ = self._model.transcribe(
            samples,
            language=self._options.language,
            beam_size=self._options.beam_size,
            word_timestamps=self._options.word_timestamps,
            **options,
        )
        yield from segments

    def _without_loops(self, samples: "NDArray[np.float32]") -> Iterator[Any]:
        """Yield segments; where the recogniser goes round in circles, go on without what it said before.

        What it has said helps it with names and terms, but it can also get stuck on it for minutes.
        """
        previous, repeats = "", 0
        whole = self._run(samples, initial_prompt=self._prompt, condition_on_previous_text=True)
        for segment in whole:
            repeats = repeats + 1 if segment.text.strip() == previous else 1
            previous = segment.text.strip()
            if repeats < LOOP_LENGTH:
                yield segment
                continue
            offset = segment.start
            rest = samples[int(offset * SAMPLE_RATE) :]
            for later in self._run(rest, condition_on_previous_text=False):
                yield _shifted(later, offset)
            return

    def _in_batches(self, samples: "NDArray[np.float32]") -> Iterator[Any]:
        """Yield segments of windows that are recognised side by side, none knowing the others."""
        from faster_whisper import BatchedInferencePipeline  # noqa: PLC0415

        speech: dict[str, Any] = {"vad_filter": True}
        if not self._options.search_speech:
            seconds = len(samples) / SAMPLE_RATE
            starts = range(0, max(1, int(seconds + 0.5)), WINDOW_SECONDS)
            windows = [
                {"start": start, "end": min(start + WINDOW_SECONDS, seconds)} for start in starts
            ]
            speech = {"vad_filter": False, "clip_timestamps": windows}
        segments, _ = BatchedInferencePipeline(self._model).transcribe(
            samples,
            language=self._options.language,
            beam_size=self._options.beam_size,
            batch_size=self._options.batch_size,
            word_timestamps=self._options.word_timestamps,
            without_timestamps=False,
            **speech,
        )
        yield from segments

    def _again(self, samples: "NDArray[np.float32]", hotwords: str) -> list[Any]:
        """Recognise a few seconds once more, with words to listen for."""
        segments, _ = self._model.transcribe(
            samples,
            language=self._options.language,
            beam_size=self._options.beam_size,
            initial_prompt=self._prompt,
            hotwords=hotwords,
            condition_on_previous_text=False,
        )
        return list(segments)


def detect_language(model: "WhisperModel", samples: "NDArray[np.float32]") -> str:
    """Return the code of the language that is spoken."""
    if not model.model.is_multilingual:
        return "en"
    language: str = model.detect_language(audio=samples)[0]
    return language


def _shifted(segment: Any, seconds: float) -> Any:
    segment.start += seconds
    segment.end += seconds
    for word in segment.words or ():
        word.start += seconds
        word.end += seconds
    return segment
