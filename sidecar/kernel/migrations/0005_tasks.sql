CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'done')),
    due_at TEXT,
    note_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    completed_at TEXT
) STRICT;

CREATE INDEX tasks_by_creation ON tasks (created_at DESC, task_id DESC);
CREATE INDEX tasks_by_note ON tasks (note_id) WHERE note_id IS NOT NULL;
