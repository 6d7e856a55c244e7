CREATE TABLE observations (id INTEGER PRIMARY KEY, type TEXT, title TEXT, content TEXT, project TEXT, scope TEXT,
    topic_key TEXT, created_at TEXT, updated_at TEXT, deleted_at TEXT);
INSERT INTO observations VALUES (1, 'decision', 'Tests', 'Run the tests with a single worker.', '{name}', 'project',
    'tests', '2026-01-02 03:04:05', '2026-01-03 03:04:05', NULL);
INSERT INTO observations VALUES (2, 'note', 'Gone', 'Deleted long ago.', '{name}', 'project', NULL,
    '2026-01-02 03:04:05', '2026-01-02 03:04:05', '2026-01-04 03:04:05');
INSERT INTO observations VALUES (3, 'note', 'Tea', 'The user drinks green tea.', '', 'personal', NULL,
    '2026-01-02 03:04:05', '2026-01-02 03:04:05', NULL);
