CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, state TEXT, created_at TEXT);
INSERT INTO memories VALUES ('o1', 'The user drinks green tea', 'active', '2026-01-02 03:04:05');
INSERT INTO memories VALUES ('o2', 'Gone', 'deleted', '2026-01-02 03:04:05');
