-- The error log; repaired_at is the time of an error's repair.
CREATE TABLE error (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    workspace TEXT,
    component TEXT NOT NULL,
    message TEXT NOT NULL,
    repaired_at REAL
);

CREATE TABLE worker (owner TEXT PRIMARY KEY, started_at REAL NOT NULL, seen_at REAL NOT NULL);

CREATE TABLE hook_run (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    event TEXT NOT NULL,
    host TEXT NOT NULL,
    workspace TEXT NOT NULL,
    session_id TEXT,
    took_ms REAL NOT NULL,
    outcome TEXT NOT NULL,
    memory_ids TEXT NOT NULL,
    reason TEXT,
    text TEXT NOT NULL,
    trace TEXT
);

CREATE INDEX hook_run_at ON hook_run (at);

CREATE INDEX hook_run_session ON hook_run (session_id, seq) WHERE session_id IS NOT NULL
