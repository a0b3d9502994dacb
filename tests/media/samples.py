"""Real recordings for tests, and such as are made of them."""

import io
import random
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
JFK = ROOT / "sidecar" / "demo" / "recordings" / "en-jfk.flac"
LECTURE = ROOT / "sidecar" / "demo" / "recordings" / "zh-lecture.flac"
MEETING = ROOT / "tests" / "recordings" / "zh-meeting.flac"
CALL = ROOT / "tests" / "recordings" / "en-two-speaker-call.flac"
RATE = 16_000

# Suffix → container and codec that PyAV writes it with.
FORMATS = {
    "wav": ("wav", "pcm_s16le"),
    "mp3": ("mp3", "libmp3lame"),
    "m4a": ("ipod", "aac"),
    "aac": ("adts", "aac"),
    "flac": ("flac", "flac"),
    "ogg": ("ogg", "libopus"),
    "opus": ("ogg", "libopus"),
    "webm": ("webm", "libopus"),
    "mp4": ("mp4", "aac"),
}
TINY_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000"
    "00030101001b0549d80000000049454e44ae426082"
)


def samples_of(path: Path) -> NDArray[np.int16]:
    """Return the samples of a 16 kHz mono recording."""
    with av.open(str(path)) as container:
        return np.concatenate(
            [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
        )


def encoded(
    samples: NDArray[np.int16],
    suffix: str,
    *,
    pictures: bool = False,
    sound: bool = True,
    bit_rate: int | None = None,
) -> bytes:
    """Return a file with these samples; with *pictures* a second of video lies beside them."""
    name, codec = FORMATS[suffix]
    target = io.BytesIO()
    with av.open(target, "w", format=name) as container:
        video = _video_stream(container, suffix) if pictures else None
        rate = 48_000 if codec == "libopus" else RATE
        stream: Any = container.add_stream(codec, rate=rate, layout="mono") if sound else None
        if video is not None:
            for index in range(10):
                picture = av.VideoFrame.from_ndarray(
                    np.full((64, 64, 3), 20 * index, np.uint8), "rgb24"
                )
                picture.pts = index
                container.mux(video.encode(picture))
            container.mux(video.encode(None))
        if stream is not None:
            if bit_rate is not None:
                stream.bit_rate = bit_rate
            frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
            frame.sample_rate = RATE
            resampler = av.AudioResampler(
                format=stream.format, layout="mono", rate=rate, frame_size=stream.frame_size or 0
            )
            for part in (*resampler.resample(frame), *resampler.resample(None)):
                container.mux(stream.encode(part))
            container.mux(stream.encode(None))
    return target.getvalue()


def _video_stream(container: av.container.OutputContainer, suffix: str) -> av.VideoStream:
    video = container.add_stream("libvpx" if suffix == "webm" else "mpeg4", rate=10)
    video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
    return video


def silence(seconds: float) -> NDArray[np.int16]:
    """Return samples of a quiet room: nearly nothing, but not nothing."""
    noise = np.random.default_rng(7).normal(0.0, 12.0, int(seconds * RATE))
    return noise.astype(np.int16)


def undecodable() -> bytes:
    """Return a file that begins as a FLAC recording and goes on with what is none."""
    return JFK.read_bytes()[:86] + random.Random(11).randbytes(4000)
