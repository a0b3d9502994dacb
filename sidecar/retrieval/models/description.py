"""How a model in a folder wants to be used, read from what the model says of itself.

A folder holds an ONNX file and ``tokenizer.json``, and says the rest in one of two ways: in a file
``embedding.json`` (or ``reranker.json``) of ours, or in the files of sentence-transformers
(``config.json``, ``modules.json``, the pooling's ``config.json``, ``config_sentence_transformers.json``).
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from sidecar.retrieval.embedding import Normalization

Pooling = Literal["mean", "cls", "last"]

EMBEDDING_FILE: Final = "embedding.json"
RERANKER_FILE: Final = "reranker.json"
TOKENIZER_FILE: Final = "tokenizer.json"
_MODEL_FILES: Final = (
    "model_quantized.onnx",
    "model_int8.onnx",
    "model.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model_int8.onnx",
    "onnx/model.onnx",
)
_ENCODERS: Final = ("BertModel", "XLMRobertaModel", "RobertaModel", "NomicBertModel", "NewModel")
DEFAULT_TOKENS: Final = 512
# Models that were trained with prefixes of which their files say nothing.
_PREFIXES: Final = (
    ("e5", "query: ", "passage: "),
    ("bge-small-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    ("bge-base-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    ("bge-large-zh", "为这个句子生成表示以用于检索相关文章：", ""),
)


class NotAModelError(Exception):
    """The folder holds no model of this kind, or one that can't be used."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """An embedding model. ``dimension`` and ``pooling`` mean nothing for a reranker."""

    model_id: str
    model_version: str
    model_file: str
    tokenizer_file: str
    dimension: int
    pooling: Pooling = "mean"
    normalization: Normalization = "l2"
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = DEFAULT_TOKENS

    def to_params(self) -> dict[str, Any]:
        """Return the form in which a worker is told of it."""
        return asdict(self)


def read_embedding_model(folder: Path) -> ModelDescription:
    """Return the embedding model in *folder*; raises :class:`NotAModelError`. Reads the disk."""
    model, tokenizer = _files(folder)
    own = _json(folder / EMBEDDING_FILE)
    config = _json(folder / "config.json")
    if own is None and not _is_encoder(config):
        raise NotAModelError
    given = _sentence_transformers(folder, config or {}) | (own or {})
    try:
        return ModelDescription(
            model_id=str(given.get("model_id") or folder.name),
            model_version=str(given.get("model_version") or _fingerprint(model)),
            model_file=str(model),
            tokenizer_file=str(tokenizer),
            dimension=int(given["dimension"]),
            pooling=_one_of(given.get("pooling", "mean"), ("mean", "cls", "last")),
            normalization=_one_of(given.get("normalization", "l2"), ("l2", "none")),
            query_prefix=str(given.get("query_prefix", "")),
            passage_prefix=str(given.get("passage_prefix", "")),
            max_tokens=int(given.get("max_tokens", DEFAULT_TOKENS)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotAModelError from error


def read_reranker(folder: Path) -> ModelDescription:
    """Return the cross-encoder in *folder*; raises :class:`NotAModelError`. Reads the disk."""
    model, tokenizer = _files(folder)
    own = _json(folder / RERANKER_FILE)
    config = _json(folder / "config.json") or {}
    architectures = config.get("architectures") or []
    judges = any(str(name).endswith("ForSequenceClassification") for name in architectures)
    if own is None and not judges:
        raise NotAModelError
    given = own or {}
    return ModelDescription(
        model_id=str(given.get("model_id") or folder.name),
        model_version=str(given.get("model_version") or _fingerprint(model)),
        model_file=str(model),
        tokenizer_file=str(tokenizer),
        dimension=0,
        max_tokens=int(given.get("max_tokens", DEFAULT_TOKENS)),
    )


def _files(folder: Path) -> tuple[Path, Path]:
    tokenizer = folder / TOKENIZER_FILE
    model = next((folder / name for name in _MODEL_FILES if (folder / name).is_file()), None)
    if model is None or not tokenizer.is_file():
        raise NotAModelError
    return model, tokenizer


def _is_encoder(config: dict[str, Any] | None) -> bool:
    architectures = (config or {}).get("architectures") or []
    return any(str(name) in _ENCODERS for name in architectures)


def _sentence_transformers(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return what the files of sentence-transformers say."""
    given: dict[str, Any] = {}
    if isinstance(config.get("hidden_size"), int):
        given["dimension"] = config["hidden_size"]
    modules = _json(folder / "modules.json")
    if isinstance(modules, list):
        kinds = {str(module.get("type", "")).rpartition(".")[2]: module for module in modules}
        given["normalization"] = "l2" if "Normalize" in kinds else "none"
        pooling = _json(
            folder / str(kinds.get("Pooling", {}).get("path", "1_Pooling")) / "config.json"
        )
        given |= _pooling(pooling or {})
    limits = _json(folder / "sentence_bert_config.json") or {}
    if isinstance(limits.get("max_seq_length"), int):
        given["max_tokens"] = limits["max_seq_length"]
    name = str(config.get("_name_or_path") or folder.name).lower() + " " + folder.name.lower()
    for part, query, passage in _PREFIXES:
        if part in name:
            given |= {"query_prefix": query, "passage_prefix": passage}
            if part.startswith("bge"):
                given.setdefault("pooling", "cls")
    prompts = (_json(folder / "config_sentence_transformers.json") or {}).get("prompts") or {}
    for role, key in (
        ("query", "query_prefix"),
        ("passage", "passage_prefix"),
        ("document", "passage_prefix"),
    ):
        if isinstance(prompts.get(role), str):
            given[key] = prompts[role]
    return given


def _pooling(config: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if isinstance(config.get("word_embedding_dimension"), int):
        given["dimension"] = config["word_embedding_dimension"]
    for key, pooling in (
        ("pooling_mode_cls_token", "cls"),
        ("pooling_mode_lasttoken", "last"),
        ("pooling_mode_mean_tokens", "mean"),
    ):
        if config.get(key):
            given["pooling"] = pooling
            break
    return given


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _one_of(value: Any, allowed: tuple[str, ...]) -> Any:
    if value not in allowed:
        raise ValueError(value)
    return value


def _fingerprint(model: Path) -> str:
    """Return a version for weights that have none: the beginning of their hash."""
    digest = hashlib.sha256()
    with model.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()[:16]
