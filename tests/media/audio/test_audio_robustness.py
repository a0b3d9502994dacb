"""Recordings of every kind that devices write, and broken ones, made of real speech."""

import io
import random
import struct
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from sidecar.media.audio.decoding import (
    DecodedAudio,
    UnreadableAudioError,
    as_sound,
    decode,
    measure,
    probe,
)
from tests.media.samples import JFK, RATE, encoded, samples_of

SECONDS = 3


def _speech() -> NDArray[np.int16]:
    return samples_of(JFK)[: SECONDS * RATE]


def _written(
    container_name: str, codec: str, rate: int, layout: str, container: dict[str, str] | None = None
) -> bytes:
    """Return the speech in this codec; *container* are options of FFmpeg's container."""
    target: Any = io.BytesIO()
    with av.open(target, "w", format=container_name, options=container or {}) as file:
        # Vorbis counts as an experiment for who writes it.
        strict = {"strict": "experimental"}
        stream: Any = file.add_stream(codec, rate=rate, layout=layout, options=strict)
        frame = av.AudioFrame.from_ndarray(_speech().reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        resampler = av.AudioResampler(
            format=stream.format, layout=layout, rate=rate, frame_size=stream.frame_size or 1024
        )
        for part in (*resampler.resample(frame), *resampler.resample(None)):
            file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    content: bytes = target.getvalue()
    return content


def _read(tmp_path: Path, content: bytes, suffix: str = "wav") -> DecodedAudio:
    path = tmp_path / f"talk.{suffix}"
    path.write_bytes(content)
    assert probe(path).has_sound
    audio = decode(path)
    assert measure(path) == pytest.approx(audio.duration, abs=0.01)
    assert audio.samples.dtype == np.int16
    sound = as_sound(audio.samples)
    assert sound.dtype == np.float32
    assert -1.0 <= sound.min() < sound.max() < 1.0
    return audio


def _is_the_speech(audio: DecodedAudio) -> bool:
    """Whether this is what was said, at its place: the loudness of both goes up and down together."""
    expected, found = as_sound(_speech()), as_sound(audio.samples)
    length = min(len(expected), len(found)) // 1600 * 1600
    assert length > 2 * RATE
    loud = [np.abs(part[:length]).reshape(-1, 1600).mean(axis=1) for part in (expected, found)]
    return float(np.corrcoef(loud)[0, 1]) > 0.95


@pytest.mark.parametrize("codec", ["pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le", "pcm_alaw", "pcm_mulaw"])  # fmt: skip
def test_samples_of_every_width_are_read(tmp_path: Path, codec: str) -> None:
    audio = _read(tmp_path, _written("wav", codec, RATE, "mono"))
    assert audio.duration == pytest.approx(SECONDS, abs=0.01)
    assert _is_the_speech(audio)
    assert not audio.truncated


@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 32_000, 44_100, 48_000, 96_000, 192_000])
@pytest.mark.parametrize("layout", ["mono", "stereo", "5.1"])
def test_every_rate_and_layout_is_read(tmp_path: Path, rate: int, layout: str) -> None:
    audio = _read(tmp_path, _written("wav", "pcm_s16le", rate, layout))
    assert audio.duration == pytest.approx(SECONDS, abs=0.02)
    assert _is_the_speech(audio)


@pytest.mark.parametrize(
    ("suffix", "container", "codec", "rate"),
    [
        ("mp3", "mp3", "libmp3lame", 44_100),
        ("mp3", "mp3", "libmp3lame", 8000),
        ("m4a", "ipod", "aac", 48_000),
        ("m4a", "ipod", "alac", 44_100),
        ("aac", "adts", "aac", 44_100),
        ("ogg", "ogg", "vorbis", 44_100),
        ("opus", "ogg", "libopus", 48_000),
        ("webm", "webm", "vorbis", 48_000),
        ("flac", "flac", "flac", 96_000),
    ],
)
def test_every_codec_of_the_accepted_suffixes_is_read(
    tmp_path: Path, suffix: str, container: str, codec: str, rate: int
) -> None:
    audio = _read(tmp_path, _written(container, codec, rate, "stereo"), suffix)
    assert audio.duration == pytest.approx(SECONDS, abs=0.15)
    assert not audio.truncated


def test_what_a_browser_records_has_no_length_and_is_read_whole(tmp_path: Path) -> None:
    content = _written("webm", "libopus", 48_000, "mono", container={"live": "1"})
    with av.open(io.BytesIO(content), "r") as container:
        assert container.duration is None
    audio = _read(tmp_path, content, "webm")
    assert audio.duration == pytest.approx(SECONDS, abs=0.15)
    assert not audio.truncated


def _with_cover(suffix: str) -> bytes:
    """Return a recording with a picture attached, as music players show it."""
    target = io.BytesIO()
    name, codec = {"mp3": ("mp3", "libmp3lame"), "m4a": ("mp4", "aac"), "flac": ("flac", "flac")}[
        suffix
    ]
    with av.open(target, "w", format=name) as file:
        stream: Any = file.add_stream(codec, rate=44_100, layout="mono")
        cover: Any = file.add_stream("png", rate=1)
        cover.width, cover.height, cover.pix_fmt = 32, 32, "rgb24"
        cover.disposition = av.stream.Disposition.attached_pic
        frame = av.AudioFrame.from_ndarray(_speech().reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        resampler = av.AudioResampler(
            format=stream.format, layout="mono", rate=44_100, frame_size=stream.frame_size or 0
        )
        picture = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), "rgb24")
        file.mux(cover.encode(picture))
        file.mux(cover.encode(None))
        for part in (*resampler.resample(frame), *resampler.resample(None)):
            file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    return target.getvalue()


@pytest.mark.parametrize("suffix", ["mp3", "m4a", "flac"])
def test_cover_art_makes_no_video(tmp_path: Path, suffix: str) -> None:
    content = _with_cover(suffix)
    audio = _read(tmp_path, content, suffix)
    assert not probe(tmp_path / f"talk.{suffix}").has_pictures
    assert audio.duration == pytest.approx(SECONDS, abs=0.15)
    assert not audio.truncated


def _wav(data_size: int, riff_size: int) -> bytes:
    content = bytearray(encoded(_speech(), "wav"))
    struct.pack_into("<I", content, 4, riff_size)
    struct.pack_into("<I", content, content.index(b"data") + 4, data_size)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "truncated"),
    [
        # Recorders that never came back to put the lengths in.
        (lambda: _wav(0xFFFFFFFF, 0xFFFFFFFF), False),
        (lambda: _wav(0, 0), False),
        (lambda: _wav(0x7FFFFFFF, 0x7FFFFFFF), False),
        # One that promised more than there is.
        (lambda: _wav(96_000_000, 96_000_036), True),
    ],
)
def test_wrong_lengths_in_a_header_hide_no_speech(
    tmp_path: Path, content: Any, truncated: bool
) -> None:
    audio = _read(tmp_path, content())
    assert audio.duration == pytest.approx(SECONDS, abs=0.05)
    assert _is_the_speech(audio)
    assert audio.truncated is truncated


def test_garbage_before_and_in_an_mp3_is_skipped(tmp_path: Path) -> None:
    content = encoded(_speech(), "mp3")
    noise = random.Random(5).randbytes(700).replace(b"\xff", b"\x00")
    middle = len(content) // 2
    audio = _read(tmp_path, content[:middle] + noise + content[middle:], "mp3")
    assert audio.duration == pytest.approx(SECONDS, abs=0.4)
    audio = _read(tmp_path, bytes(1000) + content, "mp3")
    assert audio.duration == pytest.approx(SECONDS, abs=0.4)


def test_a_tag_that_is_no_text_hides_no_speech(tmp_path: Path) -> None:
    tag = b"TIT2" + struct.pack(">I", 6) + b"\x00\x00" + b"\x03\xff\xfe\xfd\xfc\xfb"
    size = bytes([0, 0, len(tag) >> 7, len(tag) & 0x7F])
    audio = _read(tmp_path, b"ID3\x04\x00\x00" + size + tag + encoded(_speech(), "mp3"), "mp3")
    assert audio.duration == pytest.approx(SECONDS, abs=0.2)


def test_a_video_that_begins_late_and_stutters_keeps_its_sound(tmp_path: Path) -> None:
    content = encoded(_speech(), "mp4", pictures=True)
    damaged = bytearray(content)
    start = content.index(b"mdat") + 64
    damaged[start : start + 40] = bytes(40)
    audio = _read(tmp_path, bytes(damaged), "mp4")
    assert audio.duration == pytest.approx(SECONDS, abs=0.5)


@pytest.mark.parametrize("keep", [44, 45, 200])
def test_a_header_without_sound_is_no_recording(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "talk.flac"
    path.write_bytes(encoded(_speech(), "flac")[:keep])
    with pytest.raises(UnreadableAudioError):
        decode(path)
    with pytest.raises(UnreadableAudioError):
        measure(path)


def test_a_long_recording_is_decoded_in_twice_what_its_samples_need(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "long.wav"
    path.write_bytes(encoded(np.tile(_speech(), 200), "wav"))
    tracemalloc.start()
    try:
        audio = decode(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.1 * audio.samples.nbytes
