"""``rag.search``: the one tool by which a model looks things up in the notes."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final

from sidecar.chat import prompts
from sidecar.chat.citations import Sources
from sidecar.chat.context_status import context_status
from sidecar.chat.schemas import ChatFilters
from sidecar.chat.turn_tools import ChatEvent, ToolOutcome
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.providers.schemas.model_call import ToolCall, ToolDefinition
from sidecar.retrieval.schemas import SearchHit, SearchMode, SearchRequest
from sidecar.retrieval.service import Passage, RetrievalService

log = get_logger(__name__)

HITS: Final = 6
SEARCH_SECONDS: Final = 30.0
QUERY_CHARACTERS: Final = 1000
NAME: Final = "rag.search"

# Full text answers where these stand in the way of searching by meaning.
_WITHOUT_VECTORS: Final = frozenset(
    {
        "EMBEDDING_MODEL_UNAVAILABLE",
        "EMBEDDING_DIMENSION_MISMATCH",
        "INDEX_MODEL_MISMATCH",
        "VECTOR_INDEX_REBUILD_REQUIRED",
    }
)

DEFINITION: Final = ToolDefinition(
    NAME,
    "Search the user's notes and return the best passages with their source numbers. Read-only.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Keywords or a short phrase, in the language of the notes.",
            }
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)


@dataclass(slots=True)
class _Found:
    hits: list[tuple[SearchHit, Passage]]
    degraded: bool = False
    failure: str | None = None


class RetrievalTool:
    """The tool for one reply. It searches with the request's filters, whatever the model asks for."""

    definition = DEFINITION

    def __init__(
        self, notes: RetrievalService, filters: ChatFilters | None, sources: Sources
    ) -> None:
        self._notes = notes
        self._filters = filters or ChatFilters()
        self._sources = sources
        self._told_degraded = False

    async def work(self, call: ToolCall, round_number: int) -> _Found:
        """Search."""
        query = call.arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return _failed(prompts.NO_QUERY, round_number, "no query")
        try:
            async with asyncio.timeout(SEARCH_SECONDS):
                found = await self._search(query[:QUERY_CHARACTERS])
        except TimeoutError:
            return _failed(prompts.TIMED_OUT, round_number, "timeout")
        except ProjectError as error:
            return _failed(prompts.SEARCH_FAILED, round_number, error.code)
        except Exception as error:  # noqa: BLE001 - the chat goes on, and the text of it may be private
            return _failed(prompts.SEARCH_FAILED, round_number, type(error).__name__)
        log.info(
            "chat.retrieval.completed",
            extra={
                "round": round_number,
                "hits": len(found.hits),
                "mode": "fts" if found.degraded else "hybrid",
            },
        )
        return found

    async def _search(self, query: str) -> _Found:
        degraded = False
        try:
            hits = await self._hits(query, "hybrid")
        except ProjectError as error:
            if error.code not in _WITHOUT_VECTORS:
                raise
            degraded = True
            hits = await self._hits(query, "fts")
        passages = await self._notes.passages([hit.block_id for hit in hits])
        return _Found(
            [(hit, passages[hit.block_id]) for hit in hits if hit.block_id in passages], degraded
        )

    async def _hits(self, query: str, mode: SearchMode) -> list[SearchHit]:
        answer = await self._notes.search(
            SearchRequest(
                query=query,
                mode=mode,
                folder=self._filters.folder,
                tags=self._filters.tags,
                note_ids=self._filters.note_ids,
                limit=min(HITS, self._notes.profile.context_top_k),
            )
        )
        return answer.hits

    def outcome(self, work: Any) -> ToolOutcome:
        """Number what was found."""
        found: _Found = work
        if found.failure is not None:
            return ToolOutcome(json.dumps({"error": found.failure}), completed=False)
        events: list[ChatEvent] = []
        if found.degraded and not self._told_degraded:
            self._told_degraded = True
            events.append(context_status("retrieval_degraded"))
        added = self._sources.add(found.hits)
        events += [
            ChatEvent("Citation", citation.model_dump(mode="json")) for citation in added.citations
        ]
        notes = []
        if not found.hits:
            notes.append(prompts.NOTHING_FOUND)
        if added.given_before:
            numbers = ", ".join(f"[{number}]" for number in added.given_before)
            notes.append(prompts.GIVEN_BEFORE.format(numbers=numbers))
        if added.left_out:
            notes.append(prompts.LEFT_OUT.format(count=added.left_out))
        content: dict[str, Any] = {"sources": added.given}
        if notes:
            content["note"] = " ".join(notes)
        return ToolOutcome(json.dumps(content, ensure_ascii=False), events=events)


def _failed(told: str, round_number: int, reason: str) -> _Found:
    log.warning("chat.retrieval.failed", extra={"round": round_number, "hits": 0, "reason": reason})
    return _Found([], failure=told)
