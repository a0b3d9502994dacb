"""The tables of the chat."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from sidecar.chat.schemas import Conversation, MessageStatus
from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.paging import PageQuery

Role = Literal["user", "assistant"]

_JSON_FIELDS: Final = ("tool_calls", "citations", "attachments")


@dataclass(frozen=True, slots=True)
class Node:
    """A message's place in its conversation."""

    message_id: str
    parent: str | None
    role: Role
    position: int


@dataclass(slots=True)
class StoredMessage:
    """A message as it is kept. The lists hold JSON objects of the wire models."""

    message_id: str
    conversation_id: str
    position: int
    parent_message_id: str | None
    role: Role
    content: str
    created_at: str
    thinking: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    activity: list[dict[str, Any]] | None = None
    citations: list[dict[str, Any]] = field(default_factory=list)
    snapshot_id: str | None = None
    attachments: list[str] = field(default_factory=list)
    context_captured: bool = False
    status: MessageStatus = "completed"
    error_code: str | None = None
    provider_id: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an editor showed."""

    file_path: str
    content: str

    @property
    def snapshot_id(self) -> str:
        """The same for the same path and content."""
        digest = hashlib.sha256(self.file_path.encode() + b"\0" + self.content.encode())
        return digest.hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- conversations -------------------------------------------------------------------------------


def _conversation(row: sqlite3.Row, untitled: str) -> Conversation:
    return Conversation(
        conversation_id=row["conversation_id"],
        title=row["title"] if row["title"] is not None else untitled,
        active_leaf=row["active_leaf"],
        active_response_id=row["active_response_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def insert_conversation(tx: Transaction, conversation_id: str, title: str | None, now: str) -> None:
    """Insert an empty conversation."""
    tx.execute(
        "INSERT INTO chat_conversations (conversation_id, title, created_at, updated_at, used_at)"
        " VALUES (?, ?, ?, ?, ?)",
        (conversation_id, title, now, now, now),
    )


def get_conversation(conn: Readable, conversation_id: str, untitled: str) -> Conversation | None:
    """Return a conversation; *untitled* stands for a title that there isn't yet."""
    row = conn.execute(
        "SELECT * FROM chat_conversations WHERE conversation_id = ?", (conversation_id,)
    ).fetchone()
    return _conversation(row, untitled) if row else None


def list_conversations(
    conn: Readable, page: PageQuery, untitled: str
) -> tuple[list[Conversation], int]:
    """Return a page of conversations, most recently used first, and how many there are."""
    total = conn.execute("SELECT count(*) FROM chat_conversations").fetchone()[0]
    rows = conn.execute(
        "SELECT * FROM chat_conversations ORDER BY used_at DESC, conversation_no DESC"
        " LIMIT ? OFFSET ?",
        (page.limit, page.offset),
    )
    return [_conversation(row, untitled) for row in rows], total


def rename_conversation(tx: Transaction, conversation_id: str, title: str, now: str) -> None:
    """Give a conversation a title."""
    tx.execute(
        "UPDATE chat_conversations SET title = ?, updated_at = ? WHERE conversation_id = ?",
        (title, now, conversation_id),
    )


def title_once(tx: Transaction, conversation_id: str, title: str) -> None:
    """Give a conversation a title if it has none."""
    tx.execute(
        "UPDATE chat_conversations SET title = ? WHERE conversation_id = ? AND title IS NULL",
        (title, conversation_id),
    )


def mark_used(tx: Transaction, conversation_id: str, now: str) -> None:
    """Put a conversation at the head of the list."""
    tx.execute(
        "UPDATE chat_conversations SET used_at = ?, updated_at = ? WHERE conversation_id = ?",
        (now, now, conversation_id),
    )


def delete_conversation(tx: Transaction, conversation_id: str) -> bool:
    """Delete a conversation with all that only it needs; False if there is none."""
    deleted = tx.execute(
        "DELETE FROM chat_conversations WHERE conversation_id = ?", (conversation_id,)
    )
    if not deleted.rowcount:
        return False
    tx.execute(
        "DELETE FROM chat_snapshots WHERE snapshot_id NOT IN"
        " (SELECT snapshot_id FROM chat_messages WHERE snapshot_id IS NOT NULL"
        " UNION SELECT snapshot_id FROM chat_generations WHERE snapshot_id IS NOT NULL)"
    )
    tx.execute(
        "DELETE FROM chat_attachment_texts WHERE attachment_id NOT IN"
        " (SELECT attachment_id FROM chat_attachments)"
    )
    return True


def active_branch(conn: Readable, conversation_id: str) -> tuple[str | None, str | None]:
    """Return the active branch's last message and the reply that is reserved."""
    row = conn.execute(
        "SELECT active_leaf, active_response_id FROM chat_conversations WHERE conversation_id = ?",
        (conversation_id,),
    ).fetchone()
    return (row[0], row[1]) if row else (None, None)


def set_active(
    tx: Transaction, conversation_id: str, leaf: str | None, response_id: str | None
) -> None:
    """Set where the active branch ends and which reply may move it."""
    tx.execute(
        "UPDATE chat_conversations SET active_leaf = ?, active_response_id = ?"
        " WHERE conversation_id = ?",
        (leaf, response_id, conversation_id),
    )


def release_reservations(tx: Transaction) -> None:
    """Forget which replies were expected by a process that is gone."""
    tx.execute(
        "UPDATE chat_conversations SET active_response_id = NULL"
        " WHERE active_response_id IS NOT NULL"
    )


def next_position(tx: Transaction, conversation_id: str) -> int:
    """Return the position of a message that begins now."""
    tx.execute(
        "UPDATE chat_conversations SET last_position = last_position + 1 WHERE conversation_id = ?",
        (conversation_id,),
    )
    row = tx.execute(
        "SELECT last_position FROM chat_conversations WHERE conversation_id = ?", (conversation_id,)
    ).fetchone()
    return int(row[0])


# -- messages ------------------------------------------------------------------------------------


def nodes(conn: Readable, conversation_id: str) -> list[Node]:
    """Return the places of all messages, in the order of their beginning."""
    rows = conn.execute(
        "SELECT message_id, parent_message_id, role, position FROM chat_messages"
        " WHERE conversation_id = ? ORDER BY position",
        (conversation_id,),
    )
    return [Node(row[0], row[1], row[2], row[3]) for row in rows]


def load_messages(conn: Readable, message_ids: Sequence[str]) -> list[StoredMessage]:
    """Return messages in the order of *message_ids*."""
    rows = conn.execute(
        "SELECT * FROM chat_messages WHERE message_id IN (SELECT value FROM json_each(?))",
        (_json(list(message_ids)),),
    )
    found = {row["message_id"]: _message(row) for row in rows}
    return [found[message_id] for message_id in message_ids]


def _message(row: sqlite3.Row) -> StoredMessage:
    return StoredMessage(
        message_id=row["message_id"],
        conversation_id=row["conversation_id"],
        position=row["position"],
        parent_message_id=row["parent_message_id"],
        role=row["role"],
        content=row["content"],
        created_at=row["created_at"],
        thinking=row["thinking"],
        activity=json.loads(row["activity_json"]) if row["activity_json"] else None,
        snapshot_id=row["snapshot_id"],
        context_captured=bool(row["context_captured"]),
        status=row["status"],
        error_code=row["error_code"],
        provider_id=row["provider_id"],
        model=row["model"],
        **{name: json.loads(row[name]) for name in _JSON_FIELDS},
    )


def insert_message(tx: Transaction, message: StoredMessage) -> None:
    """Insert a message; its snapshot must be there."""
    row = asdict(message)
    activity = row.pop("activity")
    row["activity_json"] = _json(activity) if activity is not None else None
    row |= {name: _json(row[name]) for name in _JSON_FIELDS}
    columns = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    tx.execute(f"INSERT INTO chat_messages ({columns}) VALUES ({places})", row)  # noqa: S608
    tx.executemany(
        "INSERT OR IGNORE INTO chat_attachments (attachment_id, message_id) VALUES (?, ?)",
        [(attachment_id, message.message_id) for attachment_id in message.attachments],
    )


def keep_snapshot(tx: Transaction, snapshot: Snapshot) -> str:
    """Keep a snapshot and return its id."""
    snapshot_id = snapshot.snapshot_id
    tx.execute(
        "INSERT OR IGNORE INTO chat_snapshots (snapshot_id, file_path, content) VALUES (?, ?, ?)",
        (snapshot_id, snapshot.file_path, snapshot.content),
    )
    return snapshot_id


def load_snapshots(conn: Readable, snapshot_ids: Iterable[str]) -> dict[str, Snapshot]:
    """Return snapshots by id."""
    rows = conn.execute(
        "SELECT * FROM chat_snapshots WHERE snapshot_id IN (SELECT value FROM json_each(?))",
        (_json(sorted(set(snapshot_ids))),),
    )
    return {row["snapshot_id"]: Snapshot(row["file_path"], row["content"]) for row in rows}


def messages_with(conn: Readable, attachment_id: str) -> list[str]:
    """Return the messages that an attachment was sent with."""
    rows = conn.execute(
        "SELECT message_id FROM chat_attachments JOIN chat_messages USING (message_id)"
        " WHERE attachment_id = ? ORDER BY conversation_id, position",
        (attachment_id,),
    )
    return [row[0] for row in rows]


def link_linear_histories(tx: Transaction) -> int:
    """Make one path of each conversation whose messages have no parents yet; return how many.

    A conversation that knows its active branch isn't touched.
    """
    rows = tx.execute(
        "SELECT conversation_id FROM chat_conversations c WHERE active_leaf IS NULL"
        " AND EXISTS (SELECT 1 FROM chat_messages m WHERE m.conversation_id = c.conversation_id)"
    ).fetchall()
    for row in rows:
        parent: str | None = None
        last = 0
        for node in nodes(tx, row[0]):
            tx.execute(
                "UPDATE chat_messages SET parent_message_id = ? WHERE message_id = ?",
                (parent, node.message_id),
            )
            parent, last = node.message_id, node.position
        tx.execute(
            "UPDATE chat_conversations SET active_leaf = ?, last_position = max(last_position, ?)"
            " WHERE conversation_id = ?",
            (parent, last, row[0]),
        )
    return len(rows)


# -- generations ---------------------------------------------------------------------------------


def insert_generation(tx: Transaction, draft: StoredMessage) -> None:
    """Note that a reply is being generated."""
    tx.execute(
        "INSERT INTO chat_generations (message_id, conversation_id, snapshot_id, draft)"
        " VALUES (?, ?, ?, ?)",
        (draft.message_id, draft.conversation_id, draft.snapshot_id, _json(asdict(draft))),
    )


def update_generation(tx: Transaction, draft: StoredMessage) -> None:
    """Keep how far a reply has come."""
    tx.execute(
        "UPDATE chat_generations SET draft = ? WHERE message_id = ?",
        (_json(asdict(draft)), draft.message_id),
    )


def delete_generation(tx: Transaction, message_id: str) -> bool:
    """Forget that a reply is being generated; False if its conversation is gone."""
    return (
        tx.execute("DELETE FROM chat_generations WHERE message_id = ?", (message_id,)).rowcount > 0
    )


def generations(conn: Readable) -> list[StoredMessage]:
    """Return the drafts of all replies that are being generated."""
    rows = conn.execute("SELECT draft FROM chat_generations ORDER BY message_id")
    return [StoredMessage(**json.loads(row[0])) for row in rows]


# -- texts of attachments ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttachmentWords:
    """What was read in an attachment."""

    text: str
    truncated: bool
    final: bool
    """False where its owner may still change it."""


def keep_attachment_words(tx: Transaction, attachment_id: str, words: AttachmentWords) -> None:
    """Keep what was read in an attachment."""
    tx.execute(
        "INSERT OR REPLACE INTO chat_attachment_texts (attachment_id, text, truncated, final)"
        " VALUES (?, ?, ?, ?)",
        (attachment_id, words.text, words.truncated, words.final),
    )


def forget_attachment(tx: Transaction, attachment_id: str) -> None:
    """Forget what was read in an attachment."""
    tx.execute("DELETE FROM chat_attachment_texts WHERE attachment_id = ?", (attachment_id,))


def attachment_words(conn: Readable, attachment_ids: Iterable[str]) -> dict[str, AttachmentWords]:
    """Return what was read in attachments, of those that were read."""
    rows = conn.execute(
        "SELECT * FROM chat_attachment_texts"
        " WHERE attachment_id IN (SELECT value FROM json_each(?))",
        (_json(sorted(set(attachment_ids))),),
    )
    return {
        row["attachment_id"]: AttachmentWords(
            row["text"], bool(row["truncated"]), bool(row["final"])
        )
        for row in rows
    }
