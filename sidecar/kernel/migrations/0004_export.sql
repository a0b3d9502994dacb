-- What a job exports, while it waits and runs; the row is gone when the job has ended.
CREATE TABLE export_sources (
    job_id TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    source TEXT NOT NULL
) STRICT;
