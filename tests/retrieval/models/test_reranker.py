"""A real cross-encoder: read from its description, run by a worker, and asked by a search."""

from pathlib import Path

import numpy as np
import pytest

from sidecar.retrieval.models.description import read_reranker
from sidecar.retrieval.models.onnx_encoder import OnnxModel
from tests.app_client import running_app
from tests.fakes.embedders import Models
from tests.retrieval.conftest import Library
from tests.retrieval.models.real_model import OWN, lay
from tests.retrieval.models.tiny_reranker import expected, lay_reranker
from tests.vault.conftest import eventually

QUERY = "how do red foxes hunt mice in winter"
TEXTS = [
    "Interest rates rose.",
    "Red foxes hunt mice in winter: they listen, leap, and dive into the snow.",
    "Foxes hunt at night.",
    "",
]


@pytest.mark.parametrize("classes", [1, 2])
def test_the_model_itself(tmp_path: Path, classes: int) -> None:
    model = OnnxModel(read_reranker(lay_reranker(tmp_path / "judge", classes=classes)))
    scores = model.judge(QUERY, TEXTS)
    assert np.abs(scores - expected(QUERY, TEXTS)).max() < 1e-4
    assert scores[1] > 0.95 > scores[2] > scores[0]


@pytest.mark.proves("retrieval.profile.rerank")
async def test_a_search_asks_the_reranker(tmp_path: Path) -> None:
    lay(tmp_path / "models/minilm", embedding=OWN)
    async with running_app(tmp_path, models_dirs=(tmp_path / "models",)) as app:
        library = Library(app, tmp_path / "vault", Models())
        for number, text in enumerate(TEXTS[:3]):
            await library.create(f"Note {number}", text)
        await library.rebuild()
        before = await library.search(QUERY, "hybrid")
        assert not any(hit["provenance"]["reranked"] for hit in before)
        lay_reranker(tmp_path / "models/judge")

        async def is_noticed() -> bool:
            hits = await library.search(QUERY, "hybrid")
            return bool(hits) and all(hit["provenance"]["reranked"] for hit in hits)

        await eventually(is_noticed)
        hits = await library.search(QUERY, "hybrid")
        order = [int(hit["title"].removeprefix("Note ")) for hit in hits]
        scores = expected(QUERY, TEXTS[:3])
        assert order == np.argsort(-scores).tolist()
        assert [hit["score"] for hit in hits] == pytest.approx([scores[n] for n in order], abs=1e-4)
        # The other modes put nothing in order anew.
        for mode in ("fts", "vector"):
            found = await library.search(QUERY, mode)
            assert not any(hit["provenance"]["reranked"] for hit in found)
