"""The sources of one reply: numbered as they are found, each once, within a budget of text."""

from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.chat.context_fitting import most_tokens
from sidecar.chat.schemas import Citation
from sidecar.retrieval.schemas import SearchHit
from sidecar.retrieval.service import Passage

SOURCE_CHARACTERS: Final = 36_000
# A shorter piece of a passage says too little to be given.
_SHORTEST_PIECE: Final = 200


@dataclass(slots=True)
class FoundSources:
    """What one search adds to a reply."""

    given: list[dict[str, Any]] = field(default_factory=list)
    """What the model is given of each new source."""
    citations: list[Citation] = field(default_factory=list)
    given_before: list[int] = field(default_factory=list)
    """Numbers of sources that were found again."""
    left_out: int = 0
    """Sources for which there was no room."""


class Sources:
    """Numbers the passages that searches find."""

    def __init__(self, tokens: int | None = None, characters: int = SOURCE_CHARACTERS) -> None:
        """*characters* of passages, and about *tokens* of them, are given to the model at the most."""
        self._characters_left = characters
        self._tokens_left = tokens
        self._numbers: dict[str, int] = {}
        self.citations: list[Citation] = []

    def add(self, hits: list[tuple[SearchHit, Passage]]) -> FoundSources:
        """Take the hits of a search, best first."""
        found = FoundSources()
        for hit, passage in hits:
            known = self._numbers.get(hit.block_id)
            if known is not None:
                found.given_before.append(known)
                continue
            content = self._fitting(passage.text)
            if len(content) < min(len(passage.text), _SHORTEST_PIECE):
                found.left_out += 1
                continue
            self._take(content)
            citation = _citation(len(self.citations) + 1, hit, passage)
            self._numbers[hit.block_id] = citation.number
            self.citations.append(citation)
            found.citations.append(citation)
            found.given.append(
                {
                    "number": citation.number,
                    "file_path": hit.file_path,
                    "heading_path": hit.heading_path,
                    "content": content,
                }
            )
        return found

    def _fitting(self, text: str) -> str:
        """Return as much of *text* as there is room for."""
        content = text[: self._characters_left]
        if self._tokens_left is None:
            return content
        tokens = most_tokens(content)
        if tokens <= self._tokens_left:
            return content
        return content[: len(content) * max(0, self._tokens_left) // tokens]

    def _take(self, content: str) -> None:
        self._characters_left -= len(content)
        if self._tokens_left is not None:
            self._tokens_left -= most_tokens(content)


def _citation(number: int, hit: SearchHit, passage: Passage) -> Citation:
    return Citation(
        number=number,
        citation_id=f"cit_{hit.block_id}",
        note_id=hit.note_id,
        block_id=hit.block_id,
        title=hit.title,
        file_path=hit.file_path,
        heading_path=hit.heading_path,
        snippet=hit.snippet,
        start_char=passage.start,
        end_char=passage.end,
        source_audio=hit.source_audio,
        start_time=hit.start_time,
        end_time=hit.end_time,
        speaker=hit.speaker,
    )
