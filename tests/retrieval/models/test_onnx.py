"""A real ONNX model: read from its own description, run by a worker, searched with."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecar.kernel.workers.client import WorkerPool
from sidecar.retrieval.models.description import (
    NotAModelError,
    read_embedding_model,
    read_reranker,
)
from sidecar.retrieval.models.local import LocalModelSource
from sidecar.retrieval.models.onnx_encoder import OnnxModel
from tests.app_client import running_app
from tests.fakes.embedders import Models
from tests.retrieval.conftest import Library
from tests.retrieval.models.real_model import OWN, lay

SENTENCE_TRANSFORMERS = {
    "config": {"architectures": ["BertModel"], "hidden_size": 384},
    "modules": [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"},
    ],
    "1_Pooling__config": {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True},
    "sentence_bert_config": {"max_seq_length": 256},
}


@pytest.mark.parametrize("files", [{"embedding": OWN}, SENTENCE_TRANSFORMERS])
def test_a_model_says_how_it_is_used(tmp_path: Path, files: dict[str, Any]) -> None:
    found = read_embedding_model(lay(tmp_path / "minilm", **files))
    assert (found.dimension, found.pooling, found.normalization) == (384, "mean", "l2")
    assert (found.max_tokens, found.model_version) == (256, "8199be6f699a395f")
    assert found.model_id in ("MiniLM", "minilm")
    assert (found.query_prefix, found.passage_prefix) == ("", "")


def test_prefixes(tmp_path: Path) -> None:
    e5 = read_embedding_model(lay(tmp_path / "multilingual-e5-small", **SENTENCE_TRANSFORMERS))
    assert (e5.query_prefix, e5.passage_prefix) == ("query: ", "passage: ")
    plain = {"config": {"architectures": ["BertModel"], "hidden_size": 512}}
    bge = read_embedding_model(lay(tmp_path / "bge-small-zh-v1.5", **plain))
    assert (bge.pooling, bge.dimension) == ("cls", 512)
    assert bge.query_prefix.startswith("为这个句子")
    prompts = {"prompts": {"query": "Q: ", "document": "D: "}}
    given = SENTENCE_TRANSFORMERS | {"config_sentence_transformers": prompts}
    told = read_embedding_model(lay(tmp_path / "other", **given))
    assert (told.query_prefix, told.passage_prefix) == ("Q: ", "D: ")


def test_what_is_no_embedding_model(tmp_path: Path) -> None:
    whisper = {"architectures": ["WhisperForConditionalGeneration"], "hidden_size": 512}
    wrong: list[dict[str, Any]] = [
        {},
        {"config": whisper},
        {"embedding": {"model_id": "x"}},
        {"embedding": OWN | {"pooling": "sum"}},
        {"embedding": OWN | {"dimension": "many"}},
    ]
    for number, files in enumerate(wrong):
        with pytest.raises(NotAModelError):
            read_embedding_model(lay(tmp_path / str(number), **files))
    folder = lay(tmp_path / "partial", embedding=OWN)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(NotAModelError):
        read_embedding_model(folder)
    judge = {"config": {"architectures": ["BertForSequenceClassification"]}}
    assert read_reranker(lay(tmp_path / "judge", **judge)).model_id == "judge"
    with pytest.raises(NotAModelError):
        read_reranker(lay(tmp_path / "none", embedding=OWN))


@pytest.mark.proves("retrieval.embedding.normalization")
def test_the_model_itself(tmp_path: Path) -> None:
    model = OnnxModel(read_embedding_model(lay(tmp_path / "minilm", embedding=OWN)))
    texts = [
        "A cat sleeps on the sofa.",
        "A kitten naps on the couch.",
        "Interest rates rose.",
        "x " * 5000,
    ]
    vectors = model.embed(texts)
    assert vectors.shape == (4, 384)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-3
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.5 > alike[0, 2]
    # A text's vector doesn't depend on those that it is padded with.
    assert np.abs(model.embed(texts[:1])[0] @ vectors[0] - 1) < 1e-2


def test_ready_vectors_and_other_poolings(tmp_path: Path) -> None:
    folder = lay(tmp_path / "minilm", embedding=OWN)
    text = ["one text"]
    mean = OnnxModel(read_embedding_model(folder)).embed(text)
    for pooling in ("cls", "last"):
        (folder / "embedding.json").write_text(json.dumps(OWN | {"pooling": pooling}))
        other = OnnxModel(read_embedding_model(folder)).embed(text)
        assert other.shape == (1, 384)
        assert float(other[0] @ mean[0]) < 0.99


@pytest.fixture
async def english(tmp_path: Path) -> AsyncIterator[Library]:
    """A running application with the real model."""
    lay(tmp_path / "models/minilm", embedding=OWN)
    async with running_app(tmp_path, models_dirs=(tmp_path / "models",)) as app:
        assert app.vault is not None
        yield Library(app, app.vault, Models())


@pytest.mark.proves("retrieval.embedding.real-model", "retrieval.rebuild.vectors-mends")
async def test_searching_by_meaning(english: Library) -> None:
    await english.create("Cats", "A kitten sleeps on the sofa all day.")
    await english.create("Databases", "Transactions isolate concurrent writers from each other.")
    await english.create("Cooking", "Boil the pasta for nine minutes in salted water.")
    state = await english.rebuild()
    assert state["vector_index"]["compatible"] is True
    assert state["embedding"]["model_id"] == "MiniLM"
    for query, title in (
        ("feline nap", "Cats"),
        ("how do parallel updates not disturb each other", "Databases"),
        ("preparing noodles", "Cooking"),
    ):
        for mode in ("vector", "hybrid"):
            assert (await english.search(query, mode))[0]["title"] == title
    await english.create("Dogs", "The puppy chases its tail.")
    await english.at_rest()
    assert (await english.search("young hound playing"))[0]["title"] == "Dogs"


async def test_a_worker_that_dies(english: Library) -> None:
    import psutil

    await english.create("Note", "word")
    await english.rebuild()
    (child,) = english.app.services.workers.children()
    psutil.Process(child.pid).kill()
    status, body = await english.try_search("first")
    assert status == 200 or body["error"]["code"] == "EMBEDDING_MODEL_UNAVAILABLE"
    # The next one is there again.
    assert len(await english.search("second")) == 1


async def test_a_damaged_model(tmp_path: Path) -> None:
    folder = lay(tmp_path / "models/broken", embedding=OWN)
    (folder / "model.onnx").write_bytes(b"no model")
    async with running_app(tmp_path, models_dirs=(tmp_path / "models",)) as app:
        library = Library(app, tmp_path / "vault", Models())
        await library.create("Note", "word")
        state = await library.rebuild()
        assert (state["status"], state["vector_index"]) == ("failed", None)
        assert state["error_message"].startswith("EMBEDDING_MODEL_UNAVAILABLE: ")
        assert str(tmp_path) not in json.dumps(state)
        assert len(await library.found("word")) == 1


@pytest.mark.proves("retrieval.embedding.real-model")
async def test_no_model_is_made_up(tmp_path: Path) -> None:
    workers = WorkerPool()
    source = LocalModelSource((tmp_path, tmp_path / "missing"), workers)
    assert await source.local() is None
    assert await source.remote() is None
    assert await source.reranker() is None
    await workers.close()
    product = [name for name in sys.modules if name.startswith("sidecar.retrieval")]
    names = {name for module in product for name in vars(sys.modules[module]) if "Embedder" in name}
    # The only embedders of the product are the protocol, the real local model and a provider's.
    assert names <= {"Embedder", "LocalEmbedder", "RemoteEmbedder"}
