-- Which provider does what besides chat. The version rises with every change of the whole.
CREATE TABLE model_routing (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    version INTEGER NOT NULL
);
INSERT INTO model_routing (only_row, version) VALUES (1, 1);

CREATE TABLE model_routes (
    capability TEXT PRIMARY KEY,
    -- A provider that a route leads to can't be deleted.
    provider_id TEXT NOT NULL REFERENCES providers (provider_id),
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    dimensions INTEGER,
    -- The version of the whole with which this route came.
    version INTEGER NOT NULL
);
