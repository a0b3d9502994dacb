"""Wire models of search and of the index."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from sidecar.retrieval.profile import Fusion

SearchMode = Literal["fts", "vector", "hybrid"]
RebuildScope = Literal["all", "fts", "vectors"]


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


# Whatever is typed is text: what can't be stored can't be found either, and is no error.
PlainText = Annotated[str, AfterValidator(_without_surrogates)]


class RetrievalChoice(BaseModel):
    """How the two legs of a hybrid search are brought together."""

    fusion: Fusion = Field(
        "rrf",
        description="`rrf`: by rank; `weighted`: full text and vector scores, normalised, half each.",
    )


class SearchRequest(BaseModel):
    """A search. Filters combine with AND; null and an empty list are no filter."""

    query: PlainText = Field(
        max_length=1000, description="Plain text; no character is an operator."
    )
    mode: SearchMode = Field(
        "hybrid", description="`vector` and `hybrid` need an embedding model; `fts` never does."
    )
    folder: str | None = Field(
        None, description="Notes in this folder and the folders below it; relative to the vault."
    )
    tags: list[PlainText] | None = Field(
        None, max_length=100, description="Notes with all of these tags."
    )
    note_ids: list[PlainText] | None = Field(
        None, max_length=10_000, description="These notes only."
    )
    retrieval: RetrievalChoice | None = Field(None, description="null: as the app is set.")
    limit: int = Field(10, ge=1, le=100, description="How many hits to return at the most.")


class LegRank(BaseModel):
    """Where a hit stood in one of the two ways of searching."""

    rank: int = Field(description="From 1.")
    score: float = Field(description="BM25 for full text, cosine for vectors.")


class QueryEmbedding(BaseModel):
    """The model that the query was compared with."""

    source: Literal["local", "api"]
    model_id: str
    model_version: str
    dimension: int
    fallback_reason: str | None = Field(
        description="Why the local model was used although another is chosen; null if it isn't."
    )


class Provenance(BaseModel):
    """How a hit was found."""

    legs: list[Literal["fts", "vector"]]
    fts: LegRank | None
    vector: LegRank | None
    fusion: Literal["rrf", "weighted"] | None = Field(description="null unless the mode is hybrid.")
    reranked: bool
    query_embedding_cache: Literal["hit", "miss"] | None = Field(
        description="null where no query was embedded by the local model."
    )
    embedding: QueryEmbedding | None = None


class SearchHit(BaseModel):
    """A block that was found."""

    note_id: str
    block_id: str = Field(description="Stays the same while the block's text does.")
    title: str = Field(description="The note's title.")
    file_path: str = Field(description="The note's file, relative to the vault.")
    heading_path: list[str] = Field(description="The headings above the block, outermost first.")
    snippet: str = Field(description="Plain text of the block around what was found.")
    score: float = Field(description="Comparable within one answer only.")
    source_audio: str | None = Field(None, description="The recording that the note was made from.")
    start_time: float | None = Field(None, description="Where the block begins in it, in seconds.")
    end_time: float | None = Field(None, description="Where the block ends in it, in seconds.")
    speaker: str | None = None
    provenance: Provenance


class SearchResponse(BaseModel):
    """The hits, best first."""

    hits: list[SearchHit]


class EmbeddingSpace(BaseModel):
    """What vectors must have in common to be compared."""

    model_id: str
    model_version: str = Field(
        description="Of a provider's model: what tells its route from others."
    )
    dimension: int = Field(
        description="0 while a route leaves it to a provider's model that hasn't answered yet."
    )
    normalization: Literal["l2", "none"]
    source: Literal["local", "api"] = "local"


class VectorIndexState(EmbeddingSpace):
    """What the stored vectors were made with."""

    compatible: bool = Field(
        description="Whether model, version, dimension and normalisation are those of `embedding`."
    )


class IndexProgress(BaseModel):
    """How far the running work is."""

    phase: str
    current: int
    total: int
    percent: float | None
    message: str


class IndexStatus(BaseModel):
    """The state of the index."""

    status: Literal["idle", "running", "failed"]
    pending_jobs: int = Field(description="Work that is going on or waits.")
    active_job_id: str | None
    embedding: EmbeddingSpace | None = Field(
        description="The model in use; null if none is installed. Of several it is one that the "
        "catalogue recommends, else the first in the catalogue's order, else the first by name."
    )
    vector_index: VectorIndexState | None = Field(description="null if no vectors were ever made.")
    last_completed_at: str | None = Field(description="When the last run was completed.")
    error_message: str | None = Field(description="Code and message of the last run, if it failed.")
    progress: IndexProgress | None = Field(None, description="null unless something is running.")


class RebuildRequest(BaseModel):
    """What to build anew."""

    scope: RebuildScope


class RebuildAccepted(BaseModel):
    """The rebuild goes on in the background."""

    status: Literal["accepted"]
    message: str
    job_id: str
