-- Turns of sessions, refused texts, and expiry of memories.

ALTER TABLE memory ADD COLUMN expires_at TEXT;

ALTER TABLE memory ADD COLUMN sensitivity TEXT NOT NULL DEFAULT 'normal';

CREATE INDEX memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;

-- A withheld lesson was not shown, to measure whether it is followed without being shown.
ALTER TABLE impression ADD COLUMN withheld INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agent_session ADD COLUMN name TEXT;

-- The byte up to which a host's transcript was read.
ALTER TABLE agent_session ADD COLUMN read_to INTEGER;

-- Turns of sessions, without secrets; a person's turn is read once for lasting statements.
CREATE TABLE turn (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    at TEXT NOT NULL
);

CREATE INDEX turn_session ON turn (session_id, seq);

-- Texts that a person refused, by hash, or by a salted mark if the memory was purged.
CREATE TABLE refusal (
    mark TEXT PRIMARY KEY,
    memory_id TEXT NOT NULL,
    how TEXT NOT NULL,
    at TEXT NOT NULL,
    offers INTEGER NOT NULL DEFAULT 0,
    offered_at TEXT
) WITHOUT ROWID;

CREATE INDEX refusal_memory ON refusal (memory_id)
