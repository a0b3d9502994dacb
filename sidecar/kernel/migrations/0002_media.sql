CREATE TABLE attachments (
    attachment_id TEXT PRIMARY KEY,
    vault_id TEXT NOT NULL,
    file_name TEXT NOT NULL,
    stored_name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX attachments_by_vault ON attachments (vault_id, created_at DESC, attachment_id DESC);

-- Outlives its attachment, so that a repeated upload can be told that the file is gone.
CREATE TABLE upload_keys (
    vault_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    attachment_id TEXT NOT NULL,
    file_name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (vault_id, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE transcriptions (
    job_id TEXT PRIMARY KEY REFERENCES jobs (job_id),
    attachment_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX transcriptions_by_attachment ON transcriptions (attachment_id);

-- Revision 1 is the recogniser's own result. A row never changes.
CREATE TABLE transcript_revisions (
    job_id TEXT NOT NULL REFERENCES jobs (job_id),
    revision INTEGER NOT NULL,
    base_revision INTEGER,
    origin TEXT NOT NULL,
    segments TEXT NOT NULL,
    speakers TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (job_id, revision)
) STRICT;

-- The notes that were made of a transcript, with what was last written into each.
CREATE TABLE transcript_notes (
    job_id TEXT NOT NULL REFERENCES jobs (job_id),
    note_id TEXT NOT NULL,
    options TEXT NOT NULL,
    revision INTEGER NOT NULL,
    body_sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (job_id, note_id)
) STRICT, WITHOUT ROWID;
