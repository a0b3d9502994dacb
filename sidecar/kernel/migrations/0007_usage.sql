-- The ledger of model calls: one row an attempt, written once and never changed. It refers to no
-- provider, because it outlives them.
CREATE TABLE usage_attempts (
    attempt_no INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    capability TEXT NOT NULL,
    provider_id TEXT,
    provider_name TEXT,
    model TEXT NOT NULL,
    started_at TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    status TEXT NOT NULL,
    error_code TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    total_tokens INTEGER,
    audio_seconds REAL
);
CREATE INDEX usage_attempts_by_time ON usage_attempts (started_at);
