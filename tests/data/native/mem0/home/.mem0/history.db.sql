CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
    created_at TEXT, updated_at TEXT, is_deleted INTEGER);
INSERT INTO history VALUES ('e1', 'm1', NULL, 'Runs the tests with two workers', 'ADD', '2026-01-02T03:04:05Z', NULL, 0);
INSERT INTO history VALUES ('e2', 'm1', 'Runs the tests with two workers', 'Run the tests with a single worker',
    'UPDATE', '2026-01-02T03:04:05Z', '2026-01-03T03:04:05Z', 0);
INSERT INTO history VALUES ('e3', 'm2', 'Drinks coffee', NULL, 'DELETE', '2026-01-02T03:04:05Z',
    '2026-01-03T03:04:05Z', 1);
INSERT INTO history VALUES ('e4', 'm3', NULL, 'The till token is {secret}', 'ADD', '2026-01-02T03:04:05Z', NULL, 0);
