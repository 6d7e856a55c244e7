-- Pairs of names for one thing, mined from the memories: can be mined again, except those that a user removed, which
-- have a time of removal and stay. first and second are names as they are written.
CREATE TABLE bridge (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    first TEXT NOT NULL,
    second TEXT NOT NULL,
    source TEXT NOT NULL,
    memory_seq INTEGER,
    at TEXT NOT NULL,
    removed_at TEXT,
    removed_by TEXT
);

CREATE UNIQUE INDEX bridge_id ON bridge (id);

CREATE INDEX bridge_memory ON bridge (memory_seq)
