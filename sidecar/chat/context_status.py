"""``ContextStatus``: what becomes of the material around a question, for people to read."""

from typing import Literal

from sidecar.chat.turn_tools import ChatEvent
from sidecar.kernel.catalogue import text

Kind = Literal[
    "retrieval_unavailable",
    "retrieval_degraded",
    "tool_limit",
    "history_truncated",
    "attachment_reading",
    "attachment_transcribing",
    "attachment_ready",
    "attachment_truncated",
]


def context_status(
    kind: Kind,
    *,
    name: str | None = None,
    attachment_id: str | None = None,
    current: float | None = None,
    total: float | None = None,
    truncated: bool = False,
) -> ChatEvent:
    """Return the event; *name* is that of the attachment, *current* of *total* how far it is."""
    return ChatEvent(
        "ContextStatus",
        {
            "kind": kind,
            "message": text(f"context.{kind}", None, name=name),
            "attachment_id": attachment_id,
            "current": current,
            "total": total,
            "truncated": truncated,
        },
    )
