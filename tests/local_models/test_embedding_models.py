"""A real embedding model, imported by the catalogue, as search finds it."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from sidecar.kernel.workers.client import WorkerPool
from sidecar.local_models.installed import FileChecks, sha256_of
from sidecar.local_models.structure import wrong_files
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.models.local import LocalModelSource
from tests.app_client import MODELS_DIR, running_app
from tests.local_models.conftest import Desk, entry
from tests.retrieval.models.real_model import lay
from tests.vault.conftest import eventually

REAL = MODELS_DIR / "tests" / "all-minilm-l6-v2"
MODEL = "mini"


def write_catalogue(folder: Path) -> None:
    files = [
        {"path": path, "from": origin, "size": real.stat().st_size, "sha256": sha256_of(real)}
        for path, origin in (("model_int8.onnx", "model.onnx"), ("tokenizer.json", None))
        for real in [REAL / (origin or path)]
    ]
    model = entry(MODEL, ["http://127.0.0.1:9"]) | {
        "purpose": "embedding",
        "format": "onnx",
        "files": files,
        "written": {"embedding.json": {"dimension": 384, "pooling": "mean"}},
    }
    document = {"version": 1, "mirrors": [], "models": [model]}
    (folder / "catalogue.json").write_text(json.dumps(document), encoding="utf-8")


async def found(folder: Path) -> Embedder | None:
    source = LocalModelSource((folder,), WorkerPool(), FileChecks().is_unchanged)
    return await source.local()


@pytest.mark.proves("local-models.list.damaged", "local-models.import.verified")
async def test_search_finds_what_was_imported_and_is_whole(desk: Desk) -> None:
    write_catalogue(desk.managed)
    assert await found(desk.managed) is None
    model = await desk.imported(REAL, MODEL)
    assert (model["status"], model["purpose"]) == ("installed", "embedding")
    embedder = await found(desk.managed)
    assert embedder is not None
    assert (embedder.space.model_id, embedder.space.dimension) == (MODEL, 384)

    weights = desk.folder(MODEL) / "model_int8.onnx"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert await found(desk.managed) is None
    assert (await desk.model(MODEL))["status"] == "damaged"
    weights.write_bytes(content)
    assert await found(desk.managed) is not None
    assert (await desk.model(MODEL))["status"] == "installed"


@pytest.mark.parametrize("kept", [0, 1, 100, 1_000_000])
def test_a_cut_onnx_file_is_noticed(tmp_path: Path, kept: int) -> None:
    (tmp_path / "model.onnx").write_bytes((REAL / "model.onnx").read_bytes()[:kept])
    assert wrong_files(tmp_path, ["model.onnx"]) == ["model.onnx"]
    assert wrong_files(REAL, ["model.onnx"]) == []


async def test_of_several_models_the_recommended_one_is_used(tmp_path: Path) -> None:
    """The order is the catalogue's, Chinese first; a catalogue of the user's can change it."""
    async with running_app(tmp_path, models_dirs=()) as app:
        folder = app.services.settings.paths.models

        async def is_used(model_id: str) -> bool:
            state = (await app.http.get("/api/index/status")).json()
            return bool(state["embedding"] and state["embedding"]["model_id"] == model_id)

        # Each is preferred to all that came before.
        for model_id in ("a-model-of-mine", "bge-m3", "multilingual-e5-small", "bge-small-zh-v1.5"):
            lay(folder / model_id, embedding={"model_id": model_id, "dimension": 384})
            await eventually(partial(is_used, model_id))
        shutil.rmtree(folder / "bge-small-zh-v1.5")
        await eventually(partial(is_used, "multilingual-e5-small"))
