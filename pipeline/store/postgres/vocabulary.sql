-- Pairs of names for one thing, mined from the memories: can be mined again, except those that a user removed, which
-- have a time of removal and stay. first and second are names as they are written.
CREATE TABLE bridge (
    seq BIGINT,
    id TEXT COLLATE "C" NOT NULL,
    first TEXT COLLATE "C" NOT NULL,
    second TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    memory_seq BIGINT,
    at TEXT COLLATE "C" NOT NULL,
    removed_at TEXT COLLATE "C",
    removed_by TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL DEFAULT current_setting('reverie.workspace'),
    PRIMARY KEY (workspace, seq)
);

CREATE UNIQUE INDEX bridge_id ON bridge (workspace, id);

CREATE INDEX bridge_memory ON bridge (workspace, memory_seq);

CALL number_rows('bridge', once => true);

CALL keep_workspaces_apart();
