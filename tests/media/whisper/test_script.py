"""The characters that Mandarin is written in, where the recogniser forgets what it was told."""

from typing import Any

import pytest
from faster_whisper import WhisperModel

from sidecar.media.audio.speech_pieces import find_speech, stretches
from sidecar.media.whisper.model import available_threads
from sidecar.media.whisper.recognition import (
    Recognition,
    RecognitionOptions,
    prompted,
    tokenizer_of,
)
from tests.app_client import MODELS_DIR
from tests.media.samples import LECTURE, RATE, samples_of


class ForgetfulModel(WhisperModel):  # type: ignore[misc]
    """Forgets after each window what was said, as it else does after one that it was unsure of."""

    def transcribe(self, audio: Any, **options: Any) -> Any:
        """Transcribe as always."""
        return super().transcribe(audio, prompt_reset_on_temperature=-1.0, **options)


@pytest.fixture(scope="module")
def model() -> ForgetfulModel:
    """The real model."""
    return ForgetfulModel(
        str(MODELS_DIR / "whisper-base"),
        device="cpu",
        compute_type="int8",
        cpu_threads=available_threads(),
        local_files_only=True,
    )


def test_the_script_is_kept_where_the_recogniser_forgets_its_prompt(model: ForgetfulModel) -> None:
    options = RecognitionOptions("zh", False, 1, 1, "simplified", None, (), False)
    samples = samples_of(LECTURE)[: 43 * RATE]
    said = [
        segment
        for stretch in stretches(samples, find_speech(samples, {"enabled": False}))
        for segment in Recognition(model, options).segments(stretch)
    ]
    behind = "".join(segment.text for segment in said if segment.start > 29)
    assert "系统" in behind
    assert "们讲" in behind
    assert not set("條會發銀資檢統處狀態節們講內業換") & set(behind), behind


def test_a_prompt_stands_before_what_was_said_and_leaves_it_room(model: ForgetfulModel) -> None:
    tokenizer = tokenizer_of(model, "zh")

    def heard(prompt: list[int], previous: list[int]) -> list[int]:
        tokens = prompted(model, prompt).get_prompt(tokenizer, previous)
        assert tokens[0] == tokenizer.sot_prev
        assert tokens[-len(tokenizer.sot_sequence) :] == list(tokenizer.sot_sequence)
        return tokens[1 : -len(tokenizer.sot_sequence)]

    most = model.max_length // 2 - 1
    assert heard([1, 2, 3], []) == [1, 2, 3]
    assert heard([1, 2, 3], [7, 8]) == [1, 2, 3, 7, 8]
    assert heard([1, 2, 3], [1, 2, 3, 7]) == [1, 2, 3, 7]
    assert heard([1, 2, 3], list(range(10, 500))) == [1, 2, 3, *range(500 - most + 3, 500)]
    assert heard(list(range(300)), [7]) == list(range(300 - most, 300))
