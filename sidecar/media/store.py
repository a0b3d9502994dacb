"""The tables of attachments and transcripts."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from sidecar.kernel.clock import utc_now
from sidecar.kernel.database import Readable, Transaction
from sidecar.media.attachments.types import Kind
from sidecar.media.transcription.segments import Segment


@dataclass(frozen=True, slots=True)
class StoredAttachment:
    """A row of the table of attachments. ``stored_name`` is its file's name in our folder."""

    attachment_id: str
    vault_id: str
    file_name: str
    stored_name: str
    mime_type: str
    kind: Kind
    size: int
    sha256: str
    created_at: str


@dataclass(frozen=True, slots=True)
class UploadKey:
    """What an idempotency key was used for."""

    attachment_id: str
    file_name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """One revision of a transcript."""

    revision: int
    base_revision: int | None
    origin: str
    segments: list[Segment]
    speakers: dict[str, str]
    created_at: str


@dataclass(frozen=True, slots=True)
class ExportedNote:
    """A note that was made of a transcript, and what was last written into it."""

    note_id: str
    revision: int
    body_sha256: str


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- attachments -------------------------------------------------------------------------------


def _attachment_of(row: sqlite3.Row) -> StoredAttachment:
    return StoredAttachment(**dict(row))


def insert_attachment(tx: Transaction, attachment: StoredAttachment) -> None:
    """Insert an attachment."""
    tx.execute(
        "INSERT INTO attachments (attachment_id, vault_id, file_name, stored_name, mime_type, kind,"
        " size, sha256, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            attachment.attachment_id,
            attachment.vault_id,
            attachment.file_name,
            attachment.stored_name,
            attachment.mime_type,
            attachment.kind,
            attachment.size,
            attachment.sha256,
            attachment.created_at,
        ),
    )


def get_attachment(conn: Readable, vault_id: str, attachment_id: str) -> StoredAttachment | None:
    """Return an attachment of this vault."""
    row = conn.execute(
        "SELECT * FROM attachments WHERE attachment_id = ? AND vault_id = ?",
        (attachment_id, vault_id),
    ).fetchone()
    return _attachment_of(row) if row else None


def page_attachments(
    conn: Readable, vault_id: str, kind: str | None, limit: int, offset: int
) -> tuple[list[StoredAttachment], int]:
    """Return attachments newest first, and how many match."""
    values = {"vault": vault_id, "kind": kind, "limit": limit, "offset": offset}
    total = conn.execute(
        "SELECT count(*) FROM attachments"
        " WHERE vault_id = :vault AND (:kind IS NULL OR kind = :kind)",
        values,
    ).fetchone()[0]
    rows = conn.execute(
        "SELECT * FROM attachments WHERE vault_id = :vault AND (:kind IS NULL OR kind = :kind)"
        " ORDER BY created_at DESC, attachment_id DESC LIMIT :limit OFFSET :offset",
        values,
    )
    return [_attachment_of(row) for row in rows], total


def delete_attachment(tx: Transaction, attachment_id: str) -> None:
    """Forget an attachment; its upload key stays."""
    tx.execute("DELETE FROM attachments WHERE attachment_id = ?", (attachment_id,))


def stored_names(conn: Readable) -> set[str]:
    """Return the file names of all attachments, of every vault."""
    return {row["stored_name"] for row in conn.execute("SELECT stored_name FROM attachments")}


def unreferenced_before(conn: Readable, moment: str) -> list[StoredAttachment]:
    """Return the attachments older than *moment* (UTC) that no transcription was made of."""
    rows = conn.execute(
        "SELECT * FROM attachments a WHERE created_at < ? AND NOT EXISTS"
        " (SELECT 1 FROM transcriptions t WHERE t.attachment_id = a.attachment_id)",
        (moment,),
    )
    return [_attachment_of(row) for row in rows]


def get_upload_key(conn: Readable, vault_id: str, key: str) -> UploadKey | None:
    """Return what *key* was used for."""
    row = conn.execute(
        "SELECT attachment_id, file_name, sha256 FROM upload_keys"
        " WHERE vault_id = ? AND idempotency_key = ?",
        (vault_id, key),
    ).fetchone()
    return UploadKey(**dict(row)) if row else None


def insert_upload_key(tx: Transaction, key: str, attachment: StoredAttachment) -> None:
    """Note that *key* was used for *attachment*."""
    tx.execute(
        "INSERT INTO upload_keys (vault_id, idempotency_key, attachment_id, file_name, sha256, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            attachment.vault_id,
            key,
            attachment.attachment_id,
            attachment.file_name,
            attachment.sha256,
            attachment.created_at,
        ),
    )


# -- transcriptions ----------------------------------------------------------------------------


def insert_transcription(tx: Transaction, job_id: str, attachment_id: str) -> None:
    """Note which recording a job is about."""
    tx.execute(
        "INSERT INTO transcriptions (job_id, attachment_id) VALUES (?, ?)", (job_id, attachment_id)
    )


def transcriptions_of(conn: Readable, attachment_id: str) -> list[str]:
    """Return the ids of the jobs about a recording."""
    rows = conn.execute(
        "SELECT job_id FROM transcriptions WHERE attachment_id = ? ORDER BY job_id",
        (attachment_id,),
    )
    return [row["job_id"] for row in rows]


def _revision_of(row: sqlite3.Row) -> StoredRevision:
    return StoredRevision(
        revision=row["revision"],
        base_revision=row["base_revision"],
        origin=row["origin"],
        segments=json.loads(row["segments"]),
        speakers=json.loads(row["speakers"]),
        created_at=row["created_at"],
    )


def insert_revision(
    tx: Transaction,
    job_id: str,
    base: StoredRevision | None,
    segments: list[Segment],
    speakers: dict[str, str],
) -> StoredRevision:
    """Insert the revision that follows *base*, or the recogniser's own without one."""
    row = tx.execute(
        "INSERT INTO transcript_revisions"
        " (job_id, revision, base_revision, origin, segments, speakers, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (
            job_id,
            base.revision + 1 if base else 1,
            base.revision if base else None,
            "user" if base else "recognizer",
            _dump(segments),
            _dump(speakers),
            utc_now(),
        ),
    ).fetchone()
    return _revision_of(row)


def get_revision(conn: Readable, job_id: str, revision: int | None = None) -> StoredRevision | None:
    """Return a revision of a transcript, by default the current one."""
    row = conn.execute(
        "SELECT * FROM transcript_revisions WHERE job_id = ? AND (? IS NULL OR revision = ?)"
        " ORDER BY revision DESC LIMIT 1",
        (job_id, revision, revision),
    ).fetchone()
    return _revision_of(row) if row else None


def newest_transcript(conn: Readable, attachment_id: str) -> tuple[str, StoredRevision] | None:
    """Return the current revision of the newest transcript of a recording, and its job."""
    row = conn.execute(
        "SELECT r.* FROM transcriptions t JOIN transcript_revisions r USING (job_id)"
        " WHERE t.attachment_id = ? ORDER BY r.created_at DESC, r.revision DESC LIMIT 1",
        (attachment_id,),
    ).fetchone()
    return (row["job_id"], _revision_of(row)) if row else None


def current_revisions(conn: Readable, job_ids: list[str]) -> dict[str, int]:
    """Return the number of the current revision of each job that has one."""
    rows = conn.execute(
        "SELECT job_id, max(revision) AS revision FROM transcript_revisions"
        " WHERE job_id IN (SELECT value FROM json_each(?)) GROUP BY job_id",
        (_dump(job_ids),),
    )
    return {row["job_id"]: row["revision"] for row in rows}


def page_revisions(
    conn: Readable, job_id: str, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return revisions without their content, newest first, and how many there are."""
    total = conn.execute(
        "SELECT count(*) FROM transcript_revisions WHERE job_id = ?", (job_id,)
    ).fetchone()[0]
    rows = conn.execute(
        "SELECT revision, origin, created_at FROM transcript_revisions WHERE job_id = ?"
        " ORDER BY revision DESC LIMIT ? OFFSET ?",
        (job_id, limit, offset),
    )
    return [dict(row) for row in rows], total


# -- notes made of transcripts -----------------------------------------------------------------


def put_exported_note(tx: Transaction, job_id: str, options: str, note: ExportedNote) -> None:
    """Note what was written into a note that was made of a transcript with these *options*."""
    now = utc_now()
    tx.execute(
        "INSERT INTO transcript_notes"
        " (job_id, note_id, options, revision, body_sha256, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job_id, note_id) DO UPDATE SET"
        " revision = excluded.revision, body_sha256 = excluded.body_sha256,"
        " updated_at = excluded.updated_at",
        (job_id, note.note_id, options, note.revision, note.body_sha256, now, now),
    )


def latest_exported_note(conn: Readable, job_id: str, options: str) -> ExportedNote | None:
    """Return the newest note that was made of a transcript with these *options*."""
    row = conn.execute(
        "SELECT note_id, revision, body_sha256 FROM transcript_notes WHERE job_id = ? AND options = ?"
        " ORDER BY created_at DESC, note_id DESC LIMIT 1",
        (job_id, options),
    ).fetchone()
    return ExportedNote(**dict(row)) if row else None


def exported_notes(conn: Readable, job_ids: list[str]) -> list[str]:
    """Return the ids of the notes that were made of these jobs' transcripts."""
    rows = conn.execute(
        "SELECT DISTINCT note_id FROM transcript_notes"
        " WHERE job_id IN (SELECT value FROM json_each(?)) ORDER BY note_id",
        (_dump(job_ids),),
    )
    return [row["note_id"] for row in rows]
