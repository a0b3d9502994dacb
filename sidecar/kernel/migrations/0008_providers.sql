-- Model providers. Secrets are kept elsewhere; credential_id names one.
CREATE TABLE providers (
    provider_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    provider_type TEXT NOT NULL,
    base_url TEXT NOT NULL,
    credential_id TEXT,
    default_model TEXT,
    capabilities TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    request_overrides TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
-- What each provider said of its models when it was last asked for their list.
CREATE TABLE provider_models (
    provider_id TEXT NOT NULL REFERENCES providers (provider_id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    info TEXT NOT NULL,
    PRIMARY KEY (provider_id, model)
) WITHOUT ROWID;
