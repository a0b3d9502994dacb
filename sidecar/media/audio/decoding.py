"""Reads recordings with PyAV. Used in worker processes only: it imports PyAV and NumPy."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.media.audio.truncation import (
    ends_inside_ogg_page,
    missing_wav_bytes,
    mp3_tells_its_length,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE: Final = 16_000
# A recording that is shorter than its header says by more than this was cut off.
CUT_SECONDS: Final = 0.5
# Frames are resampled in groups: one call for each frame would cost more than the decoding.
_GROUP_SAMPLES: Final = 500_000
# All that marks these is a pattern of twelve bits, which any file can hold.
_WEAKLY_MARKED: Final = frozenset({"mp3", "aac"})


class UnreadableAudioError(Exception):
    """There is no sound in the file, or none that can be decoded."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a file is. ``container`` is FFmpeg's name of its format; cover art doesn't count as pictures."""

    container: str
    has_sound: bool
    has_pictures: bool


@dataclass(frozen=True, slots=True)
class DecodedAudio:
    """Mono sound at 16 kHz, in 16 bits. ``truncated``: the end is missing or damaged."""

    samples: "NDArray[np.int16]"
    truncated: bool

    @property
    def duration(self) -> float:
        """Seconds of sound."""
        return len(self.samples) / SAMPLE_RATE


def as_sound(samples: "NDArray[np.int16]") -> "NDArray[np.float32]":
    """Return samples as models take them, from -1 to 1: twice the memory, so for a piece at a time."""
    import numpy as np  # noqa: PLC0415 - see the module

    return np.multiply(samples, np.float32(1 / 32768), dtype=np.float32)


def probe(path: Path) -> Probe:
    """Say what the file at *path* is. Raises :class:`UnreadableAudioError` if it is no recording."""
    import av  # noqa: PLC0415 - see the module

    try:
        with av.open(str(path), metadata_errors="ignore") as container:
            sound = container.streams.audio
            pictures = [stream for stream in container.streams.video if not _is_cover(stream)]
            if not sound and not pictures:
                raise UnreadableAudioError
            name = str(container.format.name)
            if name in _WEAKLY_MARKED:
                next(container.decode(audio=0))
            return Probe(name, bool(sound), bool(pictures))
    except (av.error.FFmpegError, StopIteration, ValueError) as error:
        raise UnreadableAudioError from error


def _is_cover(stream: Any) -> bool:
    import av  # noqa: PLC0415

    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def decode(path: Path) -> DecodedAudio:
    """Decode the first audio track of *path* as far as that is possible.

    Raises :class:`UnreadableAudioError` if nothing of it can be decoded.
    """
    import av  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    try:
        with av.open(str(path), metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise UnreadableAudioError
            track = _Track(container)
            parts = [part.to_ndarray().reshape(-1) for part in track.resampled()]
            seconds = sum(map(len, parts)) / SAMPLE_RATE
            cut = track.missing_seconds(path, seconds) >= CUT_SECONDS
    except (av.error.FFmpegError, ValueError) as error:
        raise UnreadableAudioError from error
    if not parts:
        raise UnreadableAudioError
    return DecodedAudio(np.concatenate(parts), truncated=cut or track.damaged_at_end)


def measure(path: Path) -> float:
    """Return the seconds of sound that can be decoded, keeping none of it.

    Raises :class:`UnreadableAudioError` if there is none.
    """
    import av  # noqa: PLC0415

    try:
        with av.open(str(path), metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise UnreadableAudioError
            samples = sum(int(part.samples) for part in _Track(container).resampled())
    except (av.error.FFmpegError, ValueError) as error:
        raise UnreadableAudioError from error
    if not samples:
        raise UnreadableAudioError
    return samples / SAMPLE_RATE


class _Track:
    """The first audio track of an open container."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self._stream = container.streams.audio[0]
        self.damaged_at_end = False

    def missing_seconds(self, path: Path, seconds: float) -> float:
        """Return how much the recording lacks of what its file promises, *seconds* having been found."""
        name = self._container.format.name
        if name == "wav":
            return 8 * missing_wav_bytes(path) / (self._stream.codec_context.bit_rate or 1)
        if name == "ogg":
            return CUT_SECONDS if ends_inside_ogg_page(path) else 0.0
        if name == "aac" or (name == "mp3" and not mp3_tells_its_length(path)):
            return 0.0
        if self._stream.duration is not None:
            return float(self._stream.duration * self._stream.time_base) - seconds
        if self._container.duration is not None and not self._container.streams.video:
            return float(self._container.duration / 1_000_000) - seconds
        return 0.0

    def resampled(self) -> Iterator[Any]:
        """Yield frames of 16-bit mono sound at 16 kHz."""
        import av  # noqa: PLC0415

        resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        for group in self._grouped():
            yield from resampler.resample(group)
        yield from resampler.resample(None)

    def _grouped(self) -> Iterator[Any]:
        import av  # noqa: PLC0415

        queue = av.AudioFifo()
        for frame in self._frames():
            frame.pts = None  # gaps in the time stamps are no gaps in the sound
            queue.write(frame)
            if queue.samples >= _GROUP_SAMPLES:
                yield queue.read()
        if queue.samples:
            yield queue.read()

    def _frames(self) -> Iterator[Any]:
        """Yield what can be decoded, and note whether the end could not."""
        import av  # noqa: PLC0415

        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except av.error.FFmpegError:
                # The container itself is broken here; there is no way to what may come behind.
                self.damaged_at_end = True
                return
            if packet is None:
                return
            try:
                frames = packet.decode()
            except av.error.FFmpegError:
                self.damaged_at_end = True
                continue
            if frames:
                self.damaged_at_end = False
                yield from frames
