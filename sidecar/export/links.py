"""Links of a document: where they may lead, and the names under which those within it find its headings."""

import re
from collections import Counter
from typing import Final

from sidecar.export.document import Document, Node

_OUTWARD: Final = re.compile(r"(https?://|mailto:)", re.IGNORECASE)


def leads_out(address: str) -> bool:
    """Whether *address* leads to the web or to someone's mail; no other may be followed from a document."""
    return _OUTWARD.match(address) is not None


def anchor_of(words: str) -> str:
    """Return the name under which links within the document find a heading."""
    return "-".join(re.sub(r"[^\w\s-]", "", words.lower()).split())


class Anchors:
    """Gives out names, each once."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def new(self, words: str) -> str:
        """Return the name of a heading with *words*, with a number if an earlier heading has them."""
        wanted = anchor_of(words)
        if not wanted:
            return ""
        name = wanted
        while name in self._taken:
            name = f"{wanted}-{self._taken[wanted]}"
            self._taken[wanted] += 1
        self._taken[name] = 1
        return name


def heading_names(document: Document) -> dict[str, tuple[str, int]]:
    """Return, by the id of each heading's node, its name and its place among all headings."""
    anchors = Anchors()
    headings: list[Node] = [node for node in document.root.walk() if node.type == "heading"]
    return {
        node.node_id: (anchors.new(node.plain_text()), index)
        for index, node in enumerate(headings, start=1)
    }
