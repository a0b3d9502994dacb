-- The newest download or import of each model, and the sequence before its first event.
CREATE TABLE model_transfers (
    model_id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    beginning INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What local models were asked to do: the newest attempts only.
CREATE TABLE model_attempts (
    attempt_no INTEGER PRIMARY KEY AUTOINCREMENT,
    attempt_id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    kind TEXT NOT NULL,
    purpose TEXT NOT NULL,
    model_id TEXT,
    requested_device TEXT,
    actual_device TEXT,
    status TEXT NOT NULL,
    load_ms INTEGER,
    duration_ms INTEGER,
    error_code TEXT,
    fallback_reason TEXT
) STRICT;
