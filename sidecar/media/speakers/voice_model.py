"""A speaker model in ONNX: turns speech into a vector that tells voices apart.

Runs in worker processes of either interpreter: it needs NumPy and ONNX Runtime alone.
"""

import os
from typing import TYPE_CHECKING, Final

from sidecar.media.speakers.fbank import fbank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_THREADS: Final = 4
# Less than a quarter of a second says nothing of a voice.
FEWEST_FRAMES: Final = 25


class VoiceModel:
    """Takes filter bank features less their mean over time; its first output is the vector."""

    def __init__(self, path: str) -> None:
        """Load the file; whatever ONNX Runtime raises comes through."""
        import onnxruntime  # noqa: PLC0415 - heavy

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, min(MOST_THREADS, _usable_cores()))
        options.inter_op_num_threads = 1
        # Threads that wait by spinning take as much of the processor as those that work.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
        self._input = self._session.get_inputs()[0].name
        self.dimension = len(self._run(_some_frames()))

    def vector(self, samples: "NDArray[np.float32]") -> "NDArray[np.float32] | None":
        """Return the vector of length 1 of mono speech at 16 kHz; None for too little of it."""
        import numpy as np  # noqa: PLC0415 - heavy

        found = self.vector_of_features(fbank(samples))
        return None if found is None else found / max(float(np.linalg.norm(found)), 1e-12)

    def vector_of_features(self, features: "NDArray[np.float32]") -> "NDArray[np.float32] | None":
        """Return the vector of rows of :func:`fbank`, as the network gives it."""
        if len(features) < FEWEST_FRAMES:
            return None
        return self._run(features - features.mean(axis=0))

    def _run(self, features: "NDArray[np.float32]") -> "NDArray[np.float32]":
        output: NDArray[np.float32] = self._session.run(None, {self._input: features[None]})[0]
        return output.reshape(-1)


def _some_frames() -> "NDArray[np.float32]":
    import numpy as np  # noqa: PLC0415 - heavy

    return np.zeros((4 * FEWEST_FRAMES, 80), np.float32)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
