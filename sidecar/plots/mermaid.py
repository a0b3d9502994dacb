"""What can be told of a Mermaid diagram without running Mermaid, which this program doesn't do."""

import re
from typing import Final

PARSE_FAILED: Final = "MERMAID_PARSE_FAILED"
RENDER_FAILED: Final = "MERMAID_RENDER_FAILED"
SVG_UNSAFE: Final = "MERMAID_SVG_UNSAFE"

_FRONT_MATTER: Final = re.compile(r"\s*---\n.*?\n---[ \t]*(?:\n|$)", re.DOTALL)
_COMMENT: Final = re.compile(r"%%[^\n]*(?:\n|$)|\s+")
_TYPES: Final = re.compile(
    r"(graph|flowchart(-elk)?|sequenceDiagram|classDiagram(-v2)?|stateDiagram(-v2)?|erDiagram|journey|gantt"
    r"|pie|quadrantChart|requirement(Diagram)?|gitGraph|C4(Context|Container|Component|Dynamic|Deployment)"
    r"|mindmap|timeline|zenuml|sankey(-beta)?|xychart(-beta)?|block(-beta)?|packet(-beta)?|kanban"
    r"|architecture(-beta)?|radar-beta|treemap(-beta)?|info)(?![A-Za-z])"
)


def diagram_problem(source: str) -> str:
    """Return the code of the warning for a diagram that came without a picture.

    ``MERMAID_PARSE_FAILED`` for a source that is empty or of no known type of diagram, otherwise
    ``MERMAID_RENDER_FAILED``.
    """
    front = _FRONT_MATTER.match(source)
    position = front.end() if front else 0
    while match := _COMMENT.match(source, position):
        position = match.end()
    return RENDER_FAILED if _TYPES.match(source, position) else PARSE_FAILED
