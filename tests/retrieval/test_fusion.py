"""Bringing the legs together, and the profile that says how."""

from dataclasses import asdict, fields, replace

import pytest
from pydantic import ValidationError

from sidecar.retrieval.fusion import fuse
from sidecar.retrieval.profile import DEFAULT_PROFILE, RetrievalProfile
from sidecar.retrieval.schemas import SearchRequest
from tests.fakes.embedders import WordReranker
from tests.retrieval.conftest import Library

TEXT = [(1, 9.0), (2, 5.0), (3, 1.0)]
VECTOR = [(3, 0.9), (4, 0.8), (1, 0.1)]


@pytest.mark.proves("retrieval.fusion.rrf")
def test_reciprocal_ranks() -> None:
    fused = fuse(TEXT, VECTOR, "rrf", 60)
    assert {found.block_no: found.score for found in fused} == pytest.approx(
        {1: 1 / 61 + 1 / 63, 2: 1 / 62, 3: 1 / 63 + 1 / 61, 4: 1 / 62}
    )
    assert len(fused) == 4
    assert [found.score for found in fused] == sorted(
        (found.score for found in fused), reverse=True
    )
    one = next(found for found in fused if found.block_no == 1)
    assert (one.fts, one.vector) == ((1, 9.0), (3, 0.1))


@pytest.mark.proves("retrieval.fusion.weighted")
def test_weighted_scores() -> None:
    fused = fuse(TEXT, VECTOR, "weighted", 60)
    assert {found.block_no: found.score for found in fused} == pytest.approx(
        {1: 0.5 * 1.0 + 0.0, 2: 0.5 * 0.5, 3: 0.0 + 0.5 * 1.0, 4: 0.5 * 0.875}
    )
    assert fuse([(1, 3.0)], [], "weighted", 60)[0].score == 0.5
    assert fuse([], [], "weighted", 60) == []


@pytest.mark.proves("retrieval.profile.fields", "retrieval.profile.default")
def test_the_default_profile() -> None:
    named = {
        "profile_id": "default-v2", "version": 2, "fts_recall": 20, "vector_recall": 20, "rrf_k": 60, "rerank": True,
        "rerank_candidates": 20, "context_top_k": 8, "score_threshold": 0.0,
    }  # fmt: skip
    profile = asdict(DEFAULT_PROFILE)
    assert profile.pop("fusion") == "rrf"
    assert profile == named
    assert {field.name for field in fields(RetrievalProfile)} == {*named, "fusion"}


async def _many(library: Library, count: int) -> None:
    for number in range(count):
        await library.create(f"Note {number}", f"word {'other ' * (number % 5)}text {number}")
    await library.rebuild()


def _use(library: Library, **changes: object) -> None:
    library.app.services.retrieval.profile = replace(DEFAULT_PROFILE, **changes)  # type: ignore[arg-type]


@pytest.mark.proves("retrieval.profile.recall")
async def test_recall(library: Library) -> None:
    await _many(library, 40)
    _use(library, fts_recall=3, vector_recall=2)
    hits = await library.search("word", "hybrid", limit=1)
    assert len(hits) == 1
    profile = replace(DEFAULT_PROFILE, fts_recall=3, vector_recall=2)
    ranks = [
        (hit["provenance"]["fts"], hit["provenance"]["vector"])
        for hit in await library.search("word", "hybrid", limit=30)
    ]
    # Where more hits are asked for than the profile's recall, each leg gives as many.
    assert max(fts["rank"] for fts, _ in ranks if fts) > profile.fts_recall
    _use(library, fts_recall=3, vector_recall=30)
    hits = await library.search("word", "hybrid", limit=5)
    assert all(
        not hit["provenance"]["fts"] or hit["provenance"]["fts"]["rank"] <= 5 for hit in hits
    )


@pytest.mark.proves("retrieval.profile.threshold")
async def test_threshold(library: Library) -> None:
    await _many(library, 10)
    for mode in ("fts", "vector", "hybrid"):
        _use(library)
        scores = [hit["score"] for hit in await library.search("word", mode)]
        threshold = sorted(scores)[len(scores) // 2]
        _use(library, score_threshold=threshold)
        kept = [hit["score"] for hit in await library.search("word", mode)]
        assert kept == [score for score in scores if score >= threshold]
        assert len(kept) < len(scores) or len(set(scores)) == 1


@pytest.mark.proves("retrieval.profile.rerank")
async def test_reranking(library: Library) -> None:
    await _many(library, 12)
    before = await library.search("word", "hybrid", limit=12)
    assert not any(hit["provenance"]["reranked"] for hit in before)
    last = before[-1]
    library.models.judge = WordReranker(last["snippet"].split("text ")[1])
    hits = await library.search("word", "hybrid", limit=12)
    assert hits[0]["block_id"] == last["block_id"]
    assert all(hit["provenance"]["reranked"] for hit in hits)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    library.models.judge.judged.clear()
    _use(library, rerank_candidates=4)
    hits = await library.search("word", "hybrid", limit=12)
    assert len(library.models.judge.judged) == 4
    assert [hit["provenance"]["reranked"] for hit in hits] == [True] * 4 + [False] * 8
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert [hit["block_id"] for hit in hits[4:]] == [hit["block_id"] for hit in before[4:]]
    _use(library, rerank=False)
    hits = await library.search("word", "hybrid", limit=12)
    assert [hit["block_id"] for hit in hits] == [hit["block_id"] for hit in before]


@pytest.mark.proves("retrieval.fusion.values")
async def test_fusion_can_be_chosen(library: Library) -> None:
    await _many(library, 6)
    (hit, *_) = await library.search("word", "hybrid", retrieval={"fusion": "weighted"})
    assert hit["provenance"]["fusion"] == "weighted"
    (hit, *_) = await library.search("word", "hybrid")
    assert hit["provenance"]["fusion"] == "rrf"
    status, body = await library.try_search("word", "hybrid", retrieval={"fusion": "sum"})
    assert (status, body["error"]["code"]) == (422, "VALIDATION_ERROR")
    with pytest.raises(ValidationError):
        SearchRequest.model_validate({"query": "x", "retrieval": {"fusion": "other"}})


@pytest.mark.proves("retrieval.fusion.deterministic")
async def test_one_order(library: Library) -> None:
    for _ in range(15):
        await library.create("Same", "identical words")
    await library.rebuild()
    for mode in ("vector", "hybrid"):
        orders = []
        for _ in range(3):
            hits = await library.search("identical", mode, limit=15)
            orders.append([(hit["note_id"], hit["block_id"]) for hit in hits])
            keys = [(-hit["score"], hit["note_id"], hit["block_id"]) for hit in hits]
            assert keys == sorted(keys)
        assert orders[0] == orders[1] == orders[2]
        assert len(set(orders[0])) == 15
