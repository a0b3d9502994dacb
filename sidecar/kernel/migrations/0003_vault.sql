CREATE TABLE vaults (
    vault_id TEXT PRIMARY KEY,
    root TEXT NOT NULL UNIQUE,
    opened_at TEXT NOT NULL
) STRICT;

-- A note keeps its row, and with it its id, when its file is trashed or vanishes: it may come back.
-- Sizes and times are those of the file as it was last taken in; -1 asks for it to be read again.
CREATE TABLE notes (
    note_no INTEGER PRIMARY KEY,
    note_id TEXT NOT NULL UNIQUE,
    vault_id TEXT NOT NULL REFERENCES vaults (vault_id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('present', 'trashed', 'missing')),
    path TEXT NOT NULL,
    trash_path TEXT,
    folder_key TEXT NOT NULL,
    title TEXT NOT NULL,
    title_key TEXT NOT NULL,
    typed_title TEXT,
    typed_over TEXT,
    content_hash TEXT NOT NULL,
    front_matter_hash TEXT,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX notes_by_path ON notes (vault_id, path) WHERE state = 'present';
CREATE INDEX notes_by_update ON notes (vault_id, state, updated_at DESC, note_no);
CREATE INDEX notes_by_content ON notes (vault_id, content_hash);
CREATE INDEX notes_away_by_path ON notes (vault_id, path) WHERE state = 'missing';
CREATE INDEX notes_by_front_matter ON notes (vault_id, front_matter_hash)
    WHERE front_matter_hash IS NOT NULL;

CREATE TABLE note_tags (
    note_no INTEGER NOT NULL REFERENCES notes (note_no) ON DELETE CASCADE,
    tag_key TEXT NOT NULL,
    tag TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (note_no, tag_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX note_tags_by_tag ON note_tags (tag_key, note_no);

-- Where a note made from a recording came from; passages is JSON.
CREATE TABLE note_transcripts (
    note_no INTEGER PRIMARY KEY REFERENCES notes (note_no) ON DELETE CASCADE,
    job_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    source_audio TEXT NOT NULL,
    passages TEXT NOT NULL
) STRICT;

CREATE INDEX note_transcripts_by_job ON note_transcripts (job_id);

CREATE TABLE skipped_files (
    vault_id TEXT NOT NULL REFERENCES vaults (vault_id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (vault_id, path)
) STRICT, WITHOUT ROWID;

-- What search knows. All of it can be made again from the vault.
CREATE TABLE search_notes (
    note_no INTEGER PRIMARY KEY,
    note_id TEXT NOT NULL UNIQUE,
    vault_id TEXT NOT NULL,
    title TEXT NOT NULL,
    file_path TEXT NOT NULL,
    folder_key TEXT NOT NULL,
    source_audio TEXT
) STRICT;

CREATE INDEX search_notes_by_vault ON search_notes (vault_id, folder_key);

CREATE TABLE search_tags (
    note_no INTEGER NOT NULL REFERENCES search_notes (note_no) ON DELETE CASCADE,
    tag_key TEXT NOT NULL,
    PRIMARY KEY (tag_key, note_no)
) STRICT, WITHOUT ROWID;

CREATE INDEX search_tags_by_note ON search_tags (note_no);

-- title and headings are the words that the full text index holds for the block.
CREATE TABLE search_blocks (
    block_no INTEGER PRIMARY KEY AUTOINCREMENT,
    block_id TEXT NOT NULL UNIQUE,
    note_no INTEGER NOT NULL REFERENCES search_notes (note_no) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    headings TEXT NOT NULL,
    start_char INTEGER NOT NULL,
    end_char INTEGER NOT NULL,
    text TEXT NOT NULL,
    start_time REAL,
    end_time REAL,
    speaker TEXT
) STRICT;

CREATE INDEX search_blocks_by_note ON search_blocks (note_no, ordinal);

-- Two of them: a rebuild fills the one while the other serves.
CREATE VIRTUAL TABLE search_text_a USING fts5 (
    title, headings, body, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE search_text_b USING fts5 (
    title, headings, body, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE search_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Vectors lie in a file of their own, a row for each slot; a set is all that one model made of one
-- vault. Blocks up to covered have been embedded; a set that is building doesn't serve yet.
CREATE TABLE vector_sets (
    set_id INTEGER PRIMARY KEY AUTOINCREMENT,
    vault_id TEXT NOT NULL REFERENCES vaults (vault_id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('building', 'ready')),
    source TEXT NOT NULL,
    route TEXT NOT NULL,
    model_id TEXT NOT NULL,
    model_version TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    normalization TEXT NOT NULL,
    covered INTEGER NOT NULL
) STRICT;

CREATE INDEX vector_sets_by_vault ON vector_sets (vault_id, source, state);

CREATE TABLE vectors (
    set_id INTEGER NOT NULL REFERENCES vector_sets (set_id) ON DELETE CASCADE,
    block_no INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    PRIMARY KEY (set_id, block_no)
) STRICT, WITHOUT ROWID;
