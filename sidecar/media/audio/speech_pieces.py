"""Where the speech of a recording is, and how a long one is cut into stretches of bounded size."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sidecar.media.audio.decoding import SAMPLE_RATE, as_sound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Piece = dict[str, int]
"""``start`` and ``end`` of a piece of speech, in samples of the recording."""

# The search for speech and the recogniser need many times the memory of what they are given.
BLOCK_SAMPLES: Final = 300 * SAMPLE_RATE
LONGEST_STRETCH: Final = 2 * BLOCK_SAMPLES


@dataclass(frozen=True, slots=True)
class Stretch:
    """Speech with its pauses cut out, and where its pieces were."""

    samples: "NDArray[np.float32]"
    pieces: list[Piece]


def find_speech(samples: "NDArray[np.int16]", vad: dict[str, Any]) -> list[Piece]:
    """Return the pieces of speech in order; all of it where the search is turned off."""
    if not vad["enabled"]:
        return [
            {"start": start, "end": min(start + BLOCK_SAMPLES, len(samples))}
            for start in range(0, len(samples), BLOCK_SAMPLES)
        ]
    from faster_whisper.vad import VadOptions, get_speech_timestamps  # noqa: PLC0415

    options = VadOptions(
        threshold=vad["threshold"],
        min_speech_duration_ms=vad["min_speech_ms"],
        min_silence_duration_ms=vad["min_silence_ms"],
        speech_pad_ms=vad["speech_pad_ms"],
    )
    pieces: list[Piece] = []
    for start in range(0, len(samples), BLOCK_SAMPLES):
        block = as_sound(samples[start : start + BLOCK_SAMPLES])
        pieces += [
            {"start": start + piece["start"], "end": start + piece["end"]}
            for piece in get_speech_timestamps(block, options)
        ]
    return pieces


def stretches(samples: "NDArray[np.int16]", pieces: list[Piece]) -> Iterator[Stretch]:
    """Yield the speech in stretches of about five minutes, cut in a pause if there is one."""
    import numpy as np  # noqa: PLC0415

    gathered: list[Piece] = []
    length = 0
    for piece in pieces:
        size = piece["end"] - piece["start"]
        in_pause = not gathered or gathered[-1]["end"] < piece["start"]
        limit = BLOCK_SAMPLES if in_pause else LONGEST_STRETCH
        if gathered and length + size > limit:
            yield _joined(samples, gathered, np)
            gathered, length = [], 0
        gathered.append(piece)
        length += size
    if gathered:
        yield _joined(samples, gathered, np)


def _joined(samples: "NDArray[np.int16]", pieces: list[Piece], np: Any) -> Stretch:
    parts = [samples[piece["start"] : piece["end"]] for piece in pieces]
    return Stretch(as_sound(np.concatenate(parts)), pieces)
