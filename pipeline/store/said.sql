-- What was said, what people refused, and what ends.

ALTER TABLE memory ADD COLUMN expires_at TEXT;

ALTER TABLE memory ADD COLUMN sensitivity TEXT NOT NULL DEFAULT 'normal';

CREATE INDEX memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;

-- What was withheld was about to be shown, and was not, to learn whether it would be followed all the same.
ALTER TABLE impression ADD COLUMN withheld INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agent_session ADD COLUMN name TEXT;

-- Up to which byte of a host's transcript was read.
ALTER TABLE agent_session ADD COLUMN read_to INTEGER;

-- What was said in sessions, without secrets; a person's turn is read for what lasts once.
CREATE TABLE turn (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    at TEXT NOT NULL
);

CREATE INDEX turn_session ON turn (session_id, seq);

-- What a person refused, by the hash of its text, or by a salted mark where that was purged.
CREATE TABLE refusal (
    mark TEXT PRIMARY KEY,
    memory_id TEXT NOT NULL,
    how TEXT NOT NULL,
    at TEXT NOT NULL,
    offers INTEGER NOT NULL DEFAULT 0,
    offered_at TEXT
) WITHOUT ROWID;

CREATE INDEX refusal_memory ON refusal (memory_id)