-- The newest job of each kind of each model, and the sequence before its first event.
CREATE TABLE model_jobs (
    model_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    job_id TEXT NOT NULL,
    beginning INTEGER NOT NULL,
    PRIMARY KEY (model_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO model_jobs (model_id, kind, job_id, beginning)
    SELECT model_id, kind, job_id, beginning FROM model_transfers;
DROP TABLE model_transfers;
