"""Puts the parts of retrieval together."""

from pathlib import Path

from sidecar.kernel.database import Database
from sidecar.kernel.jobs.engine import JobEngine
from sidecar.retrieval.embedding import ModelSource
from sidecar.retrieval.full_text.leg import TextLeg
from sidecar.retrieval.indexer import SearchIndexer
from sidecar.retrieval.profile import DEFAULT_PROFILE, RetrievalProfile
from sidecar.retrieval.rebuild import IndexRebuilds
from sidecar.retrieval.search import SearchPipeline
from sidecar.retrieval.service import RetrievalService
from sidecar.retrieval.vectors.index import VectorIndex
from sidecar.retrieval.vectors.leg import VectorLeg
from sidecar.retrieval.vectors.query_cache import QueryCache
from sidecar.retrieval.vectors.sets import VectorSets
from sidecar.vault.service import VaultService


def build_retrieval(
    database: Database,
    jobs: JobEngine,
    vault: VaultService,
    indexer: SearchIndexer,
    models: ModelSource,
    folder: Path,
    profile: RetrievalProfile = DEFAULT_PROFILE,
) -> RetrievalService:
    """Return the service; *folder* is where vectors are kept, *indexer* the one of *vault*."""
    sets = VectorSets(database, folder)
    index = VectorIndex(database, vault, models, sets)
    indexer.on_change(index.blocks_changed)
    pipeline = SearchPipeline(
        database, TextLeg(), VectorLeg(database, models, index, sets, QueryCache()), models
    )
    rebuilds = IndexRebuilds(database, jobs, vault, indexer, index)
    return RetrievalService(database, vault, pipeline, index, rebuilds, profile)
