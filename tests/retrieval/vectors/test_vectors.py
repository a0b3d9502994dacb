"""Vectors: when they can be searched, and how they are kept and built anew."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.retrieval.vectors.file import VectorFile
from tests.app_client import running_app
from tests.fakes.embedders import SPACE, HashEmbedder, Models
from tests.retrieval.conftest import Library
from tests.vault.conftest import eventually

MODES = ("vector", "hybrid")


@pytest.mark.proves("retrieval.errors.rebuild-required", "retrieval.index-status.embedding")
async def test_before_the_first_build(library: Library) -> None:
    await library.create("Note", "word")
    for mode in MODES:
        status, body = await library.try_search("word", mode)
        assert (status, body["error"]["code"]) == (409, "VECTOR_INDEX_REBUILD_REQUIRED")
    state = await library.index()
    assert state["embedding"] == {
        "model_id": "hash", "model_version": "1", "dimension": 64, "normalization": "l2", "source": "local",
    }  # fmt: skip
    assert state["vector_index"] is None
    assert len(await library.found("word")) == 1


@pytest.mark.proves(
    "retrieval.index-status.vector-index",
    "retrieval.index-status.compatible",
    "retrieval.search.provenance",
)
async def test_searching(library: Library) -> None:
    await library.create("Apple", "# Fruit\n\napple pie recipe")
    await library.create("Motor", "engine oil change")
    state = await library.rebuild()
    assert state["vector_index"] == {**state["embedding"], "compatible": True}
    hits = await library.search("apple recipe")
    assert hits[0]["title"] == "Apple"
    assert hits[0]["heading_path"] == ["Fruit"]
    assert hits[0]["provenance"] == {
        "legs": ["vector"],
        "fts": None,
        "vector": {"rank": 1, "score": hits[0]["score"]},
        "fusion": None,
        "reranked": False,
        "query_embedding_cache": "miss",
        "embedding": {
            "source": "local",
            "model_id": "hash",
            "model_version": "1",
            "dimension": 64,
            "fallback_reason": None,
        },
    }
    assert 0.5 < hits[0]["score"] <= 1.0
    (hybrid, *_) = await library.search("apple recipe", "hybrid")
    assert hybrid["title"] == "Apple"
    assert hybrid["provenance"]["legs"] == ["fts", "vector"]
    assert hybrid["provenance"]["fusion"] == "rrf"
    assert hybrid["score"] == pytest.approx(2 / 61)


@pytest.mark.proves(
    "retrieval.errors.index-mismatch",
    "retrieval.errors.index-mismatch-each",
    "retrieval.errors.mismatch-details",
    "retrieval.spaces.no-mixing",
    "retrieval.rebuild.vectors-mends",
    "retrieval.search.fts-without-model",
)
@pytest.mark.parametrize(
    "change",
    [{"model_id": "other"}, {"model_version": "2"}, {"dimension": 32}, {"normalization": "none"}],
)
async def test_another_model(library: Library, change: dict[str, Any]) -> None:
    await library.create("Note", "word")
    await library.rebuild()
    library.models.embedder = library.embedder.changed(**change)
    for mode in MODES:
        status, body = await library.try_search("word", mode)
        assert (status, body["error"]["code"]) == (409, "INDEX_MODEL_MISMATCH")
        assert body["error"]["details"] == {
            "embedding": library.embedder.space.describe(),
            "vector_index": SPACE.describe(),
        }
    assert library.embedder.queries == []
    state = await library.index()
    assert state["vector_index"]["compatible"] is False
    assert state["embedding"] == library.embedder.space.describe()
    # What is written meanwhile is no reason to mix the two.
    await library.create("Later", "word later")
    assert len(await library.found("word")) == 2
    assert (await library.at_rest())["vector_index"]["compatible"] is False
    state = await library.rebuild()
    assert (state["status"], state["vector_index"]["compatible"]) == ("idle", True)
    assert len(await library.search("word")) == 2


@pytest.mark.proves("retrieval.rebuild.no-old-vectors", "retrieval.rebuild.scope-vectors-only")
async def test_during_a_build_with_another_model(library: Library) -> None:
    await library.create("Note", "word")
    await library.rebuild()
    library.models.embedder = library.embedder.changed(model_version="2")
    library.embedder.gate = asyncio.Event()
    answer = await library.app.http.post("/api/index/rebuild", json={"scope": "vectors"})
    assert answer.status_code == 202

    async def is_running() -> bool:
        return (await library.index())["active_job_id"] == answer.json()["job_id"]

    await eventually(is_running)
    for mode in MODES:
        assert await library.error(mode) == "INDEX_MODEL_MISMATCH"
    assert len(await library.found("word")) == 1
    library.embedder.gate.set()
    await library.at_rest()
    assert await library.error() is None


@pytest.mark.proves("retrieval.rebuild.same-model-serves")
async def test_during_a_build_with_the_same_model(library: Library) -> None:
    await library.create("Note", "word")
    await library.rebuild()
    library.embedder.gate = asyncio.Event()
    await library.app.http.post("/api/index/rebuild", json={"scope": "vectors"})
    assert len(await library.search("word")) == 1
    library.embedder.gate.set()
    await library.at_rest()
    assert len(await library.search("word")) == 1
    assert len(library.embedder.passages) == 2


@pytest.mark.proves("retrieval.rebuild.scope-fts-only", "retrieval.rebuild.scopes")
async def test_scopes(library: Library) -> None:
    await library.create("Note", "word")
    await library.rebuild()
    embedded = len(library.embedder.passages)
    state = await library.rebuild("fts")
    assert len(library.embedder.passages) == embedded
    assert state["vector_index"]["compatible"] is True
    assert len(await library.search("word")) == 1
    await library.rebuild("all")
    assert len(library.embedder.passages) == 2 * embedded
    library.models.embedder = library.embedder.changed(model_id="other")
    state = await library.rebuild("fts")
    assert state["vector_index"]["compatible"] is False
    state = await library.rebuild("all")
    assert state["vector_index"]["compatible"] is True


@pytest.mark.proves(
    "retrieval.rebuild.failure-keeps-old",
    "retrieval.errors.dimension-mismatch",
    "retrieval.index-status.error-message",
)
async def test_vectors_of_the_wrong_length(library: Library) -> None:
    await library.create("Note", "word")
    await library.rebuild()
    library.embedder.real_dimension = 63
    state = await library.rebuild()
    assert state["status"] == "failed"
    assert state["error_message"].startswith("EMBEDDING_DIMENSION_MISMATCH: ")
    assert state["vector_index"]["compatible"] is True
    status, body = await library.try_search("a new query")
    assert (status, body["error"]["code"]) == (502, "EMBEDDING_DIMENSION_MISMATCH")
    library.embedder.real_dimension = None
    assert len(await library.search("word")) == 1
    state = await library.rebuild()
    assert (state["status"], state["error_message"]) == ("idle", None)


@pytest.mark.proves("retrieval.errors.dimension-mismatch")
async def test_vectors_that_are_no_numbers_are_refused(library: Library) -> None:
    await library.create("Note", "word")

    async def not_numbers(*_: Any) -> Any:
        return np.full((1, 64), np.nan, np.float32)

    HashEmbedder.embed_passages, real = not_numbers, HashEmbedder.embed_passages  # type: ignore[assignment, method-assign]
    try:
        state = await library.rebuild()
    finally:
        HashEmbedder.embed_passages = real  # type: ignore[method-assign]
    assert state["error_message"].startswith("EMBEDDING_DIMENSION_MISMATCH: ")
    assert await library.error() == "VECTOR_INDEX_REBUILD_REQUIRED"


@pytest.mark.proves("retrieval.blocks.incremental", "retrieval.errors.small-gap")
async def test_an_edit_embeds_what_changed(library: Library) -> None:
    paragraphs = [f"paragraph {number} stays" for number in range(20)]
    note = await library.create("Note", "\n\n".join(paragraphs))
    await library.rebuild()
    library.embedder.passages.clear()
    library.embedder.gate = asyncio.Event()
    await library.put(
        note["note_id"], "\n\n".join(["intro added", *paragraphs[:-1], "ending changed"])
    )
    state = await library.index()
    assert state["status"] == "running"
    assert state["pending_jobs"] >= 1
    assert state["active_job_id"] is not None
    assert len(await library.search("paragraph 3 stays", limit=50)) == 19
    library.embedder.gate.set()
    await library.at_rest()
    assert [text.split("\n")[-1] for text in library.embedder.passages] == [
        "intro added", "ending changed",
    ]  # fmt: skip
    assert (await library.search("ending changed"))[0]["snippet"] == "ending changed"
    await library.app.http.patch(f"/api/notes/{note['note_id']}", json={"title": "Renamed"})
    library.path(await library.get(note["note_id"])).rename(library.folder / "Moved.md")
    await library.note_at("Moved.md")
    await library.at_rest()
    assert len(library.embedder.passages) == 2


@pytest.mark.proves("retrieval.blocks.background-vectors", "retrieval.errors.rebuild-required")
async def test_writing_does_not_need_the_model(library: Library) -> None:
    await library.create("Note", "word")
    await library.rebuild()
    library.embedder.error = ProjectError("EMBEDDING_MODEL_UNAVAILABLE")
    await library.create("Second", "word too")
    assert len(await library.found("word")) == 2

    async def has_stalled() -> bool:
        return (await library.index())["status"] != "running"

    await eventually(has_stalled)
    # A gap that nobody is working on.
    library.embedder.error = None
    assert await library.error() == "VECTOR_INDEX_REBUILD_REQUIRED"
    await library.create("Third", "word again")
    await library.at_rest()
    assert len(await library.search("word")) == 3


@pytest.mark.proves("retrieval.search.deleted-note")
async def test_deleted_notes_are_not_found(library: Library) -> None:
    notes = [await library.create(f"Note {number}", f"word {number}") for number in range(60)]
    await library.rebuild()
    for note in notes[:55]:
        await library.delete(note["note_id"])
        for mode in MODES:
            assert note["note_id"] not in {
                hit["note_id"] for hit in await library.search("word", mode)
            }
    assert len(await library.search("word", limit=50)) == 5
    for number in range(10):
        await library.create(f"New {number}", f"word new {number}")
    await library.at_rest()
    assert len(await library.search("word", limit=50)) == 15


@pytest.mark.proves(
    "retrieval.search.filters-combine",
    "retrieval.search.filter-folder",
    "retrieval.search.filter-tags",
    "retrieval.search.filter-note-ids",
)
@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
async def test_filters_apply_before_the_limit(library: Library, mode: str) -> None:
    for _ in range(40):
        await library.create("Noise", "word word word", folder="noise", tags=["t"])
    wanted = [
        await library.create(
            f"Wanted {n}", "word among others", folder="f/sub", tags=["t", f"n{n}"]
        )
        for n in range(3)
    ]
    await library.create("Other", "word", folder="f2", tags=["t"])
    await library.rebuild()
    hits = await library.search("word", mode, folder="f", tags=["T"], limit=3)
    assert {hit["note_id"] for hit in hits} == {note["note_id"] for note in wanted}
    hits = await library.search("word", mode, folder="f", tags=["t", "n1"])
    assert [hit["title"] for hit in hits] == ["Wanted 1"]
    ids = [wanted[0]["note_id"], wanted[2]["note_id"], "note_0"]
    hits = await library.search("word", mode, folder="f", note_ids=ids, limit=2)
    assert {hit["note_id"] for hit in hits} == {ids[0], ids[1]}
    assert await library.search("word", mode, folder="f", tags=["n1"], note_ids=ids) == []


@pytest.mark.proves("retrieval.rebuild.persistence", "retrieval.query-cache.process-only")
async def test_after_a_restart(tmp_path: Path, models: Models) -> None:
    async with running_app(tmp_path) as app:
        library = Library(app, tmp_path / "vault", models)
        await library.create("Note", "word")
        await library.rebuild()
        assert (await library.search("word"))[0]["provenance"]["query_embedding_cache"] == "miss"
        assert (await library.search("word"))[0]["provenance"]["query_embedding_cache"] == "hit"
    async with running_app(tmp_path) as app:
        library = Library(app, tmp_path / "vault", models)
        (hit,) = await library.search("word")
        assert hit["provenance"]["query_embedding_cache"] == "miss"
        assert len(library.embedder.passages) == 1
    models.embedder = library.embedder.changed(model_version="2")
    async with running_app(tmp_path) as app:
        library = Library(app, tmp_path / "vault", models)
        assert await library.error() == "INDEX_MODEL_MISMATCH"
        assert (await library.index())["vector_index"]["model_version"] == "1"
    models.embedder = None
    async with running_app(tmp_path) as app:
        library = Library(app, tmp_path / "vault", models)
        assert await library.error() == "EMBEDDING_MODEL_UNAVAILABLE"
        state = await library.index()
        assert state["embedding"] is None
        assert state["vector_index"]["compatible"] is False


@pytest.mark.proves(
    "retrieval.query-cache.provenance",
    "retrieval.query-cache.per-model",
    "retrieval.query-cache.single-local-query",
)
async def test_the_query_cache(library: Library) -> None:
    await library.create("Note", "word")
    await library.rebuild()

    async def cache(query: str, mode: str) -> str | None:
        return (await library.search(query, mode))[0]["provenance"]["query_embedding_cache"]

    assert [await cache("word", mode) for mode in ("vector", "hybrid", "vector")] == [
        "miss",
        "hit",
        "hit",
    ]
    assert [await cache("word two", "hybrid"), await cache("word two", "vector")] == ["miss", "hit"]
    assert await cache("word", "fts") is None
    assert library.embedder.queries == ["word", "word two"]
    library.models.embedder = library.embedder.changed(model_version="2")
    await library.rebuild()
    assert await cache("word", "vector") == "miss"


@pytest.mark.proves("retrieval.embedding.normalization")
async def test_vectors_have_length_one(library: Library, tmp_path: Path) -> None:
    await library.create("Note", "some words\n\nmore words here")
    await library.rebuild()
    (path,) = (tmp_path / "data/vectors").glob("*.f32")
    stored = np.fromfile(path, "<f4").reshape(-1, 64)
    assert len(stored) == 2
    assert np.abs(np.linalg.norm(stored, axis=1) - 1).max() < 1e-3
    scores = [hit["score"] for hit in await library.search("Note some words")]
    assert all(-1.001 <= score <= 1.001 for score in scores)


async def test_old_files_are_removed(library: Library, tmp_path: Path) -> None:
    await library.create("Note", "word")
    for _ in range(3):
        await library.rebuild()
    assert len(list((tmp_path / "data/vectors").glob("*.f32"))) == 1


def test_a_file_of_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(500, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    file = VectorFile(tmp_path / "v.f32", 16, [])
    blocks = list(range(1000, 1500))
    file.publish(blocks[:200], file.write(vectors[:200]))
    file.publish(blocks[200:], file.write(vectors[200:]))
    exact = np.argsort(-(vectors @ vectors[3]))[:10]
    found = file.search(vectors[3], 10, None)
    assert [number for number, _ in found] == [1000 + int(place) for place in exact]
    assert found[0][1] == pytest.approx(1.0, abs=1e-5)
    allowed = blocks[::7]
    found = file.search(vectors[3], 10, allowed)
    nearest = [place for place in np.argsort(-(vectors @ vectors[3])) if place % 7 == 0][:10]
    assert [number for number, _ in found] == [1000 + int(place) for place in nearest]
    assert file.search(vectors[3], 10, []) == []
    # Freed room is used again, and what was there is found no more.
    file.forget(blocks[:100])
    size = (tmp_path / "v.f32").stat().st_size
    file.publish([7], file.write(vectors[:1]))
    assert (tmp_path / "v.f32").stat().st_size == size
    assert [number for number, _ in file.search(vectors[0], 1, None)] == [7]
    assert 1003 not in {number for number, _ in file.search(vectors[3], 401, None)}
    file.close()


def test_rows_that_a_power_cut_took_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "v.f32").write_bytes(np.ones(8, "<f4").tobytes())
    file = VectorFile(tmp_path / "v.f32", 4, [(1, 0), (2, 1), (3, 2), (4, 9)])
    found = file.search(np.ones(4, np.float32), 10, None)
    assert {number for number, _ in found} == {1, 2}
    file.publish([5], file.write(np.ones((1, 4), np.float32)))
    assert len(file.search(np.ones(4, np.float32), 10, None)) == 3
