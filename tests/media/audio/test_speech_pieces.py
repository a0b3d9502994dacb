"""How a long recording is cut, so that its memory stays bounded."""

import numpy as np
import pytest

from sidecar.media.audio.speech_pieces import (
    BLOCK_SAMPLES,
    LONGEST_STRETCH,
    Stretch,
    find_speech,
    stretches,
)
from sidecar.media.transcription.profiles import VoiceActivity
from tests.app_client import MODELS_DIR
from tests.media.samples import JFK, RATE, samples_of, silence

VAD = VoiceActivity().model_dump()


def _pieces(*ranges: tuple[int, int]) -> list[dict[str, int]]:
    return [{"start": start * RATE, "end": end * RATE} for start, end in ranges]


def _shape(seconds: int, pieces: list[dict[str, int]]) -> list[list[tuple[int, int]]]:
    samples = np.repeat(np.arange(seconds, dtype=np.int16), RATE)
    found = []
    for stretch in stretches(samples, pieces):
        ranges = [(piece["start"] // RATE, piece["end"] // RATE) for piece in stretch.pieces]
        assert len(stretch.samples) == sum(end - start for start, end in ranges) * RATE
        assert stretch.samples[0] * 32768 == ranges[0][0]
        found.append(ranges)
    return found


def test_a_recording_of_a_few_minutes_is_one_stretch() -> None:
    assert _shape(250, _pieces((1, 100), (110, 240))) == [[(1, 100), (110, 240)]]
    assert _shape(10, []) == []


def test_a_long_recording_is_cut_in_its_pauses() -> None:
    pieces = _pieces((0, 200), (210, 290), (300, 420), (430, 700))
    assert _shape(700, pieces) == [[(0, 200), (210, 290)], [(300, 420)], [(430, 700)]]


def test_speech_without_a_pause_is_cut_at_last() -> None:
    pieces = _pieces((0, 300), (300, 600), (600, 900), (900, 1000))
    shape = _shape(1000, pieces)
    assert [piece for stretch in shape for piece in stretch] == [
        (0, 300), (300, 600), (600, 900), (900, 1000),
    ]  # fmt: skip
    longest = max(sum(end - start for start, end in stretch) for stretch in shape)
    assert longest * RATE <= LONGEST_STRETCH


@pytest.mark.parametrize("lead", [0, 8])
def test_speech_is_found_in_every_block(lead: int) -> None:
    jfk = samples_of(JFK)
    quiet = silence(BLOCK_SAMPLES / RATE - lead - 11)
    samples = np.concatenate([silence(lead), jfk, quiet, jfk, silence(3)])
    pieces = find_speech(samples, VAD)
    assert len(pieces) == 2
    assert pieces[0]["start"] == pytest.approx(lead * RATE, abs=RATE)
    assert pieces[1]["start"] == pytest.approx(BLOCK_SAMPLES, abs=RATE)
    assert pieces == sorted(pieces, key=lambda piece: piece["start"])


def test_without_a_search_everything_is_speech() -> None:
    samples = np.zeros(2 * BLOCK_SAMPLES + 5, np.int16)
    pieces = find_speech(samples, VAD | {"enabled": False})
    assert [piece["end"] - piece["start"] for piece in pieces] == [BLOCK_SAMPLES, BLOCK_SAMPLES, 5]


def test_a_later_stretch_has_the_times_of_the_whole_recording() -> None:
    from sidecar.media.whisper.model import Setup, load_whisper
    from sidecar.media.whisper.recognition import Recognition, RecognitionOptions

    options = RecognitionOptions("en", True, 1, 1, "simplified", None, (), True)
    model = load_whisper(str(MODELS_DIR / "whisper-base"), Setup("cpu", "int8", 1))
    spoken = (samples_of(JFK)[: 4 * RATE] / 32768).astype(np.float32)
    stretch = Stretch(spoken, _pieces((700, 702), (800, 802)))
    segments = list(Recognition(model, options).segments(stretch))
    words = [word for segment in segments for word in segment.words]
    assert 700 <= words[0].start < 702
    assert 800 <= words[-1].end <= 802.5
    assert all(700 <= word.start <= 702 or 800 <= word.start <= 802.5 for word in words)
