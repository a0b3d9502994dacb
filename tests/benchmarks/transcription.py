"""How much longer a transcription takes through the sidecar than in a script of one's own.

    python -m tests.benchmarks.transcription [--runs 5]

Both sides run the same recogniser with the same settings on the same recordings, with the model loaded.
The two take turns, and each is compared with its neighbour, since what else the machine does changes slowly.
Prints the median of these ratios, and the fastest run of each side.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from host_bridge.launcher import Sidecar, launch
from sidecar.media.profiles import TranscriptionProfile
from sidecar.media.whisper_model import available_threads
from sidecar.media.whisper_recognition import SCRIPT_PROMPTS, timed_prompt
from tests.app_client import MODELS_DIR, ROOT

RECORDINGS = (
    (ROOT / "tests" / "recordings" / "en-two-speaker-call.flac", "en"),
    (ROOT / "sidecar" / "demo" / "recordings" / "en-jfk.flac", None),
    (ROOT / "sidecar" / "demo" / "recordings" / "zh-lecture.flac", "zh"),
)
MODEL = MODELS_DIR / "whisper-base"
TARGET = 1.10


def directly(model: Any, recording: Path, language: str | None) -> float:
    """Return the seconds of a call without the sidecar."""
    started = time.perf_counter()
    prompt = timed_prompt(model, "zh", SCRIPT_PROMPTS["simplified"]) if language == "zh" else None
    segments, _ = model.transcribe(
        str(recording),
        language=language,
        beam_size=TranscriptionProfile().beam_size,
        vad_filter=True,
        initial_prompt=prompt,
    )
    assert "".join(segment.text for segment in segments)
    return time.perf_counter() - started


def through(sidecar: Sidecar, attachment_id: str, language: str | None) -> float:
    """Return the seconds from the request to the transcript."""
    started = time.perf_counter()
    request = {"attachment_id": attachment_id, "language": language}
    job_id = sidecar.post("/api/media/transcriptions", json=request).check().json()["job_id"]
    last = ""
    for event in sidecar.events(f"/api/media/transcriptions/{job_id}/events"):
        last = event.event
    assert last == "Completed", last
    assert sidecar.get(f"/api/media/transcriptions/{job_id}").check().json()["text"]
    return time.perf_counter() - started


def measure(sidecar: Sidecar, runs: int) -> list[float]:
    """Print a line for each recording and return the ratios of all pairs."""
    from faster_whisper import WhisperModel

    model = WhisperModel(
        str(MODEL),
        device="cpu",
        compute_type="int8",
        cpu_threads=available_threads(),
        local_files_only=True,
    )
    ratios: list[float] = []
    for recording, language in RECORDINGS:
        uploaded = sidecar.upload("/api/media/attachments", recording).check().json()
        through(sidecar, uploaded["attachment_id"], language)
        directly(model, recording, language)
        pairs = []
        for number in range(runs):
            # Whoever runs first may find the machine in another state.
            if number % 2:
                served = through(sidecar, uploaded["attachment_id"], language)
                pairs.append((directly(model, recording, language), served))
            else:
                direct = directly(model, recording, language)
                pairs.append((direct, through(sidecar, uploaded["attachment_id"], language)))
        ratios += [served / direct for direct, served in pairs]
        fastest_direct, fastest_served = (min(side) for side in zip(*pairs, strict=True))
        print(
            f"{recording.name:26} {language or 'detected':8}  direct {fastest_direct:6.2f} s"
            f"  sidecar {fastest_served:6.2f} s  ratio {statistics.median(ratios[-runs:]):.3f}",
            flush=True,
        )
    return ratios


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5, help="runs of each recording on each side")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        vault.mkdir()
        arguments = ("--models-dir", str(MODELS_DIR))
        with launch(
            data_dir=Path(folder) / "data", vault_path=vault, extra_args=arguments
        ) as sidecar:
            ratios = measure(sidecar, runs)
    print(f"sidecar / direct: {statistics.median(ratios):.3f} (target: at most {TARGET:.2f})")


if __name__ == "__main__":
    main()
