from pathlib import Path

import pytest

from sidecar.media.audio.decoding import UnreadableAudioError, decode, probe
from tests.media.samples import CALL, FORMATS, JFK, encoded, samples_of

CUT = sorted(FORMATS.keys() - {"m4a", "mp4"})


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_every_accepted_format_is_read_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"talk.{suffix}"
    path.write_bytes(encoded(samples_of(JFK), suffix))
    found = probe(path)
    assert found.has_sound
    assert not found.has_pictures
    audio = decode(path)
    assert audio.duration == pytest.approx(11.0, abs=0.15)
    assert not audio.truncated


@pytest.mark.parametrize("suffix", CUT)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_cut_recording_is_read_up_to_its_cut(tmp_path: Path, suffix: str, share: float) -> None:
    content = encoded(samples_of(JFK), suffix)
    path = tmp_path / f"talk.{suffix}"
    path.write_bytes(content[: int(len(content) * share)])
    audio = decode(path)
    assert audio.truncated
    assert 11.0 * share - 1.5 < audio.duration < 11.0 * share + 0.5


@pytest.mark.parametrize("suffix", sorted(set(CUT) - {"wav"}))
def test_a_damaged_end_is_noticed(tmp_path: Path, suffix: str) -> None:
    content = encoded(samples_of(JFK), suffix)
    path = tmp_path / f"talk.{suffix}"
    path.write_bytes(content[: len(content) * 2 // 3] + bytes(len(content) // 3))
    audio = decode(path)
    assert audio.truncated
    assert audio.duration > 6.0


@pytest.mark.parametrize("suffix", ["mp4", "webm"])
def test_a_video_is_read_for_its_sound(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"talk.{suffix}"
    path.write_bytes(encoded(samples_of(JFK), suffix, pictures=True))
    assert probe(path).has_pictures
    assert decode(path).duration == pytest.approx(11.0, abs=0.15)


def test_a_video_without_sound_cannot_be_decoded(tmp_path: Path) -> None:
    path = tmp_path / "silent.mp4"
    path.write_bytes(encoded(samples_of(JFK), "mp4", pictures=True, sound=False))
    assert not probe(path).has_sound
    with pytest.raises(UnreadableAudioError):
        decode(path)


@pytest.mark.parametrize("content", [b"", b"hello " * 500, bytes(range(256)) * 64])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(content)
    with pytest.raises(UnreadableAudioError):
        probe(path)


def test_other_sample_rates_and_channels_become_16_khz_mono(tmp_path: Path) -> None:
    assert len(decode(CALL).samples) == 30 * 16_000
