"""The characters that Mandarin is written in, where the recogniser loses what it was told."""

import numpy as np

from sidecar.media.whisper.model import Setup, load_whisper
from sidecar.media.whisper.recognition import Recognition, RecognitionOptions
from sidecar.media.whisper.speech_pieces import find_speech, stretches
from tests.app_client import MODELS_DIR
from tests.media.samples import LECTURE, RATE, samples_of

UNCLEAR_SECONDS = 28


def _partly_unclear() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return half a minute that several voices and noise make unclear, and then clear speech."""
    lecture = samples_of(LECTURE).astype(int)
    start = lecture[: UNCLEAR_SECONDS * RATE]
    noise = np.random.default_rng(5).normal(0, 4000, len(start)).astype(int)
    unclear = start // 2 + noise + np.roll(start[::-1], 3 * RATE)
    whole = np.concatenate([unclear, lecture[10 * RATE : 23 * RATE]])
    return (np.clip(whole, -32768, 32767) / 32768).astype(np.float32)


def test_the_script_is_kept_behind_half_a_minute_that_nobody_could_understand() -> None:
    model = load_whisper(str(MODELS_DIR / "whisper-base"), Setup("cpu", "int8", 1))
    options = RecognitionOptions("zh", False, 1, 1, "simplified", None, (), False)
    samples = _partly_unclear()
    said = [
        segment
        for stretch in stretches(samples, find_speech(samples, {"enabled": False}))
        for segment in Recognition(model, options).segments(stretch)
    ]
    clear = "".join(segment.text for segment in said if segment.start > UNCLEAR_SECONDS - 1)
    assert "简单" in clear
    assert "时间片" in clear
    assert not set("簡單長業會讓後時間輪轉") & set(clear), clear
