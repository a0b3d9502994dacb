"""A real embedding model, imported by the catalogue, as search finds it."""

import json
from pathlib import Path

import pytest

from sidecar.kernel.workers import WorkerPool
from sidecar.local_models.installed import FileChecks, sha256_of
from sidecar.local_models.structure import wrong_files
from sidecar.retrieval.embedding import Embedder
from sidecar.retrieval.local_embedder import LocalModelSource
from tests.app_client import MODELS_DIR
from tests.local_models.conftest import Desk, entry

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
