"""Filter bank features of speech, as Kaldi computes them and as speaker models were trained on.

Runs in worker processes of either interpreter: it needs NumPy alone.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE: Final = 16_000
FRAME_SAMPLES: Final = 400
STEP_SAMPLES: Final = 160
MELS: Final = 80
_FFT: Final = 512
_PREEMPHASIS: Final = 0.97
_LOWEST_HERTZ: Final = 20.0


def fbank(samples: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the logarithms of 80 bands of each frame of 25 ms, one each 10 ms, as (frames, 80).

    *samples* are mono at 16 kHz, from -1 to 1. Less than one frame gives no row. The same as
    ``torchaudio.compliance.kaldi.fbank`` with 80 bands and no dither.
    """
    import numpy as np  # noqa: PLC0415 - heavy

    if len(samples) < FRAME_SAMPLES:
        return np.zeros((0, MELS), np.float32)
    window, bands = _constants()
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::STEP_SAMPLES]
    frames = frames - frames.mean(axis=1, keepdims=True, dtype=np.float32)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    spectrum = np.fft.rfft((frames - _PREEMPHASIS * before) * window, _FFT)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    energies = power[:, : _FFT // 2] @ bands
    logarithms: NDArray[np.float32] = np.log(np.maximum(energies, np.finfo(np.float32).eps))
    return logarithms


@lru_cache(maxsize=1)
def _constants() -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
    """Return the window, and the weight of each frequency in each band."""
    import numpy as np  # noqa: PLC0415 - heavy

    turn = 2 * np.pi * np.arange(FRAME_SAMPLES) / (FRAME_SAMPLES - 1)
    window = (0.5 - 0.5 * np.cos(turn)) ** 0.85
    edges = np.linspace(_mel(_LOWEST_HERTZ), _mel(SAMPLE_RATE / 2), MELS + 2)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    mels = _mel(np.arange(_FFT // 2) * SAMPLE_RATE / _FFT)[:, None]
    rising, falling = (mels - left) / (centre - left), (right - mels) / (right - centre)
    bands = np.maximum(0.0, np.minimum(rising, falling))
    return window.astype(np.float32), bands.astype(np.float32)


def _mel(hertz: "float | NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np  # noqa: PLC0415 - heavy

    return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))
