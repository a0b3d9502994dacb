"""Runs BERT-like models with ONNX Runtime. Used inside the worker alone."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sidecar.retrieval.models.description import ModelDescription

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_THREADS: Final = 4


class OnnxModel:
    """A model with its tokenizer."""

    def __init__(self, description: ModelDescription) -> None:
        import onnxruntime  # noqa: PLC0415 - heavy
        from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

        self.description = description
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(MOST_THREADS, _usable_cores())
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            description.model_file, options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._outputs = [item.name for item in self._session.get_outputs()]
        self._tokenizer = Tokenizer.from_file(description.tokenizer_file)
        self._tokenizer.enable_truncation(max_length=description.max_tokens)
        self._tokenizer.enable_padding(**_padding_of(self._tokenizer))

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one vector a text, normalised if the model's description says so."""
        import numpy as np  # noqa: PLC0415 - heavy

        outputs, mask = self._run(self._tokenizer.encode_batch(list(texts)))
        vectors: NDArray[np.float32] = self._pooled(outputs, mask).astype(np.float32)
        if self.description.normalization == "l2":
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def judge(self, query: str, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return how well each text answers the query, from 0 to 1."""
        import numpy as np  # noqa: PLC0415 - heavy

        outputs, _ = self._run(self._tokenizer.encode_batch([(query, text) for text in texts]))
        logits = outputs[self._outputs[0]]
        # Models with two classes tell "no" and "yes"; those with one tell how much "yes".
        raw = (
            logits[:, 1] - logits[:, 0]
            if logits.shape[-1] == 2
            else logits.reshape(len(texts), -1)[:, 0]
        )
        scores: NDArray[np.float32] = 1.0 / (1.0 + np.exp(-raw.astype(np.float32)))
        return scores

    def _run(self, encodings: Sequence[Any]) -> tuple[dict[str, Any], Any]:
        import numpy as np  # noqa: PLC0415 - heavy

        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        feeds = {
            "input_ids": np.array([encoding.ids for encoding in encodings], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([encoding.type_ids for encoding in encodings], np.int64),
        }
        given = {name: value for name, value in feeds.items() if name in self._inputs}
        return dict(zip(self._outputs, self._session.run(None, given), strict=True)), mask

    def _pooled(self, outputs: dict[str, Any], mask: Any) -> Any:
        import numpy as np  # noqa: PLC0415 - heavy

        ready = outputs.get("sentence_embedding")
        if ready is not None and ready.ndim == 2:
            return ready
        states = outputs.get("last_hidden_state", outputs[self._outputs[0]])
        if states.ndim == 2:
            return states
        if self.description.pooling == "cls":
            return states[:, 0]
        if self.description.pooling == "last":
            return states[np.arange(len(states)), mask.sum(axis=1) - 1]
        weights = mask[:, :, None].astype(states.dtype)
        return (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)


def _padding_of(tokenizer: Any) -> dict[str, Any]:
    """Return how to pad to the longest text; a fixed length in the file would waste most work."""
    former = tokenizer.padding or {}
    return {
        "pad_id": former.get("pad_id", 0),
        "pad_type_id": former.get("pad_type_id", 0),
        "pad_token": former.get("pad_token", "[PAD]"),
    }


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
