"""A real embedding model in a folder, as a user would put it there."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.app_client import MODELS_DIR

WEIGHTS = MODELS_DIR / "tests/all-minilm-l6-v2"
OWN = {
    "model_id": "MiniLM",
    "dimension": 384,
    "pooling": "mean",
    "normalization": "l2",
    "max_tokens": 256,
}


def lay(folder: Path, **files: Any) -> Path:
    """Make a model folder with the real weights and the given JSON files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(WEIGHTS / name, folder / name)
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder
