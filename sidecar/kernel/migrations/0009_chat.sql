-- title is null until somebody gives one or the first question does. used_at orders the list.
CREATE TABLE chat_conversations (
    conversation_no INTEGER PRIMARY KEY,
    conversation_id TEXT NOT NULL UNIQUE,
    title TEXT,
    active_leaf TEXT,
    active_response_id TEXT,
    last_position INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    used_at TEXT NOT NULL
) STRICT;

CREATE INDEX chat_conversations_by_use ON chat_conversations (used_at DESC, conversation_no DESC);

-- What editors showed, each state once: a conversation about one file sends it with every question.
CREATE TABLE chat_snapshots (
    snapshot_id TEXT PRIMARY KEY,
    file_path TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A tree: a message's versions share its parent. Positions rise in the order of beginning.
CREATE TABLE chat_messages (
    message_id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL
        REFERENCES chat_conversations (conversation_id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    parent_message_id TEXT,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content TEXT NOT NULL,
    thinking TEXT,
    tool_calls TEXT NOT NULL DEFAULT '[]',
    activity_json TEXT,
    citations TEXT NOT NULL DEFAULT '[]',
    snapshot_id TEXT REFERENCES chat_snapshots (snapshot_id),
    attachments TEXT NOT NULL DEFAULT '[]',
    context_captured INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'completed'
        CHECK (status IN ('completed', 'failed', 'cancelled')),
    error_code TEXT,
    provider_id TEXT,
    model TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX chat_messages_by_position ON chat_messages (conversation_id, position);
CREATE INDEX chat_messages_by_snapshot ON chat_messages (snapshot_id)
    WHERE snapshot_id IS NOT NULL;

-- Which messages an attachment was sent with.
CREATE TABLE chat_attachments (
    attachment_id TEXT NOT NULL,
    message_id TEXT NOT NULL REFERENCES chat_messages (message_id) ON DELETE CASCADE,
    PRIMARY KEY (attachment_id, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX chat_attachments_by_message ON chat_attachments (message_id);

-- What was read in an attachment, for the questions that follow. final is 0 where its owner may
-- still change it, as a transcript.
CREATE TABLE chat_attachment_texts (
    attachment_id TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    truncated INTEGER NOT NULL,
    final INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Replies that are being generated; draft is the message as far as it has come, in JSON. A row that
-- is found at a start was left by a process that died.
CREATE TABLE chat_generations (
    message_id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL
        REFERENCES chat_conversations (conversation_id) ON DELETE CASCADE,
    snapshot_id TEXT REFERENCES chat_snapshots (snapshot_id),
    draft TEXT NOT NULL
) STRICT;

CREATE INDEX chat_generations_by_conversation ON chat_generations (conversation_id);
