"""What the search of very many vectors finds of what the exact search finds, and how fast both are.

The vectors are those of real sentences, made by the ONNX model of the tests, and mixtures of them: a
paragraph of several sentences lies between its sentences. The queries are the vectors of real
questions, of which none is stored.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.kernel.workers.client import WorkerPool
from sidecar.retrieval.vectors import file as vector_file
from sidecar.retrieval.vectors.file import VectorFile
from tests.benchmarks.retrieval_models import minilm_source
from tests.benchmarks.retrieval_texts import load_questions, sentences

SENTENCES = 1200
MIXED = (2, 4)
QUERIES = 100
HITS = 20
WRITTEN_AT_ONCE = 20_000


async def measure_recall(count: int) -> dict[str, Any]:
    """Return recall and speed of a file of *count* vectors, beside exact search."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stored, queries = await _embedded(folder)
        made = await asyncio.to_thread(_fill, folder / "vectors.f32", stored, count)
        started = time.perf_counter()
        await asyncio.to_thread(made.make_sketch)
        seconds = time.perf_counter() - started
        figures = await asyncio.to_thread(_compare, made, queries)
        made.close()
    return {
        "vectors": count,
        "queries": len(queries),
        "sketch_made_in_s": round(seconds, 1),
    } | figures


async def _embedded(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the vectors of sentences and of questions, of length 1."""
    english, chinese = sentences()
    _, questions = load_questions()
    workers = WorkerPool()
    try:
        model = await minilm_source(folder / "models", workers).local()
        assert model is not None
        texts = [*english[: SENTENCES * 4 // 5], *chinese[: SENTENCES // 5]]
        parts = [
            await model.embed_passages(texts[start : start + 32])
            for start in range(0, len(texts), 32)
        ]
        asked = [question.text for question in questions[:QUERIES]]
        return np.concatenate(parts), np.array(await model.embed_queries(asked))
    finally:
        await workers.close()


def _fill(path: Path, stored: NDArray[np.float32], count: int) -> VectorFile:
    draw = np.random.default_rng(3)
    made = VectorFile(path, stored.shape[1], [])
    for start in range(0, count, WRITTEN_AT_ONCE):
        size = min(WRITTEN_AT_ONCE, count - start)
        weights = draw.random((size, MIXED[1]), np.float32)
        # From two sentences to four; the others weigh nothing. No two vectors are equal, which would
        # make it a matter of chance which of them is found.
        weights *= np.arange(MIXED[1]) < draw.integers(*MIXED, size, endpoint=True)[:, None]
        chosen = draw.integers(0, len(stored), (size, MIXED[1]))
        vectors = np.einsum("ij,ijk->ik", weights, stored[chosen])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        made.publish(range(start, start + size), made.write(vectors))
    return made


def _compare(made: VectorFile, queries: NDArray[np.float32]) -> dict[str, Any]:
    fast, fast_times = _search_all(made, queries)
    limit, vector_file.EXACT_FLOATS = vector_file.EXACT_FLOATS, 1 << 62  # type: ignore[misc]
    try:
        exact, exact_times = _search_all(made, queries)
    finally:
        vector_file.EXACT_FLOATS = limit  # type: ignore[misc]
    recalls = [len(found & wanted) / len(wanted) for found, wanted in zip(fast, exact, strict=True)]
    return {
        f"recall@{HITS}": round(statistics.fmean(recalls), 4),
        "lowest_recall_of_a_query": round(min(recalls), 2),
        "with_sketch": made.uses_sketch,
        "p50_ms": round(statistics.median(fast_times) * 1000, 2),
        "exact_p50_ms": round(statistics.median(exact_times) * 1000, 2),
    }


def _search_all(
    made: VectorFile, queries: NDArray[np.float32]
) -> tuple[list[set[int]], list[float]]:
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        found.append({number for number, _ in made.search(query, HITS, None)})
        times.append(time.perf_counter() - started)
    return found, times
