"""The worker that turns texts into vectors, and judges texts for a query.

It keeps the model that it used last of each kind. A process of its own takes the models' memory
with it when it rests.
"""

import base64
import sys
import time
from typing import Any, Final

from sidecar.kernel.workers.process import Task, WorkerServer, WorkFailed
from sidecar.retrieval.models.description import ModelDescription
from sidecar.retrieval.models.onnx_encoder import OnnxModel

WORKER_NAME: Final = "embedding"


class EmbeddingWorker:
    """Holds the models between requests."""

    def __init__(self) -> None:
        self._models: dict[str, OnnxModel] = {}

    def embed(self, params: dict[str, Any], _task: Task) -> dict[str, Any]:
        """Embed ``texts``; the vectors are 32-bit floats, row after row, in base 64.

        ``load_ms`` is None if the model was loaded already.
        """
        model, load_ms = self._model("embed", params["model"])
        vectors = model.embed(params["texts"])
        return {
            "load_ms": load_ms,
            "dimension": int(vectors.shape[1]),
            "vectors": base64.b64encode(vectors.astype("<f4").tobytes()).decode("ascii"),
        }

    def judge(self, params: dict[str, Any], _task: Task) -> dict[str, Any]:
        """Judge ``texts`` for ``query``."""
        model, load_ms = self._model("judge", params["model"])
        scores = model.judge(params["query"], params["texts"])
        return {"load_ms": load_ms, "scores": [float(score) for score in scores]}

    def _model(self, kind: str, params: dict[str, Any]) -> tuple[OnnxModel, int | None]:
        description = ModelDescription(**params)
        known = self._models.get(kind)
        if known is not None and known.description == description:
            return known, None
        began = time.monotonic()
        self._models.pop(kind, None)
        try:
            self._models[kind] = OnnxModel(description)
        except Exception as error:
            # Missing packages, damaged weights, an unknown operator: none of them gives vectors.
            sys.stderr.write(f"model can't be loaded: {type(error).__name__}: {error}\n")
            raise WorkFailed("EMBEDDING_MODEL_UNAVAILABLE") from error
        return self._models[kind], round(1000 * (time.monotonic() - began))


def main() -> None:
    """Serve until stdin ends."""
    worker = EmbeddingWorker()
    WorkerServer({"embed": worker.embed, "judge": worker.judge}).run()
