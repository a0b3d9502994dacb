CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    resource_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    event TEXT NOT NULL,
    data TEXT NOT NULL,
    terminal INTEGER NOT NULL,
    timestamp TEXT NOT NULL,
    PRIMARY KEY (resource_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    result TEXT,
    progress TEXT,
    warnings TEXT NOT NULL DEFAULT '[]',
    error_code TEXT,
    error_params TEXT,
    error_details TEXT,
    starts INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    facet TEXT,
    created_at TEXT NOT NULL,
    started_at TEXT,
    updated_at TEXT NOT NULL,
    completed_at TEXT
) STRICT;

CREATE INDEX jobs_by_kind ON jobs (kind, created_at DESC, job_id DESC);
CREATE INDEX jobs_unfinished ON jobs (status) WHERE status IN ('queued', 'running');
