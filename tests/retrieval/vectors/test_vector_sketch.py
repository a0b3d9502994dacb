"""The search of very many vectors answers what the exact search answers."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sidecar.retrieval.vectors import file as vector_file
from sidecar.retrieval.vectors.file import VectorFile
from sidecar.retrieval.vectors.sketch import RECALL_WANTED, Sketch

COUNT, DIMENSION, HITS = 12_000, 96, 10


def texts_like(count: int, seed: int) -> NDArray[np.float32]:
    """Return vectors as texts have them: many subjects, and variation that decays with direction."""
    draw = np.random.default_rng(seed)
    decay = (1 / np.arange(1, DIMENSION + 1) ** 0.7).astype(np.float32)
    subjects = np.random.default_rng(0).normal(size=(60, DIMENSION)) * decay
    noise = draw.normal(size=(count, DIMENSION)) * decay
    vectors = (subjects[draw.integers(0, 60, count)] + 0.7 * noise).astype(np.float32)
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VectorFile:
    """A file that counts as a very large one."""
    monkeypatch.setattr(vector_file, "EXACT_FLOATS", 1_000)
    made = VectorFile(tmp_path / "v.f32", DIMENSION, [])
    vectors = texts_like(COUNT, 1)
    for start in range(0, COUNT, 4000):
        part = vectors[start : start + 4000]
        made.publish(range(start, start + len(part)), made.write(part))
    made.make_sketch()
    return made


def recall(
    file: VectorFile, vectors: NDArray[np.float32], allowed: NDArray[np.int64] | None
) -> float:
    """Return which part of the exact hits a search finds, over many queries."""
    held = []
    for query in texts_like(200, 2):
        scores = vectors @ query
        if allowed is not None:
            scores = np.where(np.isin(np.arange(len(vectors)), allowed), scores, -np.inf)
        exact = set(np.argsort(-scores)[:HITS].tolist())
        found = {number for number, _ in file.search(query, HITS, allowed)}
        held.append(len(found & exact) / HITS)
    return float(np.mean(held))


def test_recall(file: VectorFile) -> None:
    vectors = texts_like(COUNT, 1)
    assert recall(file, vectors, None) >= RECALL_WANTED
    assert recall(file, vectors, np.arange(0, COUNT, 3)) >= RECALL_WANTED
    assert recall(file, vectors, np.arange(50)) == 1.0
    hits = file.search(vectors[17], 1, None)
    assert hits[0][0] == 17
    assert hits[0][1] == pytest.approx(1.0, abs=1e-5)


def test_changes_are_seen_without_a_new_sketch(file: VectorFile) -> None:
    query = texts_like(1, 3)[0]
    before = file.search(query, 5, None)
    file.forget([number for number, _ in before])
    assert not {number for number, _ in before} & {
        number for number, _ in file.search(query, 5, None)
    }
    # Into freed room, and behind everything that the sketch knows.
    file.publish([COUNT + number for number in range(8)], file.write(np.stack([query] * 8)))
    found = file.search(query, 8, None)
    assert {number for number, _ in found} == {COUNT + number for number in range(8)}


def test_vectors_without_structure_are_searched_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(5)
    vectors = draw.normal(size=(6000, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sketch = Sketch(vectors, np.ones(6000, np.bool_))
    assert not sketch.is_good
    monkeypatch.setattr(vector_file, "EXACT_FLOATS", 1_000)
    file = VectorFile(tmp_path / "v.f32", DIMENSION, [])
    file.publish(range(6000), file.write(vectors))
    file.make_sketch()
    query = draw.normal(size=DIMENSION).astype(np.float32)
    exact = np.argsort(-(vectors @ query))[:10]
    assert [number for number, _ in file.search(query, 10, None)] == exact.tolist()
